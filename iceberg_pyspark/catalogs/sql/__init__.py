"""A catalog in a database: SQLite, PostgreSQL, MySQL or MariaDB."""
