/** Files of a table of ours, as a relation of Spark's has them. */
public interface IcebergPyFiles {}
