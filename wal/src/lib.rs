//! A write-ahead log of opaque records in memory-mapped segments.
