"""What several test folders share: Spark sessions, the Java oracle, TPC-H data, plain rows."""
