//! Reading of Parquet files: only what a flat table needs, with every size checked before it is used.
//!
//! | File | Holds |
//! |---|---|
//! | `source.rs` | bytes of a file, by position |
//! | `thrift.rs` | the encoding of footers and headers |
//! | `footer.rs` | schema, row groups, column chunks, and their bounds |
//! | `page.rs` | pages: where they are, and decompressed |
//! | `decode.rs` | encodings of values |
//! | `values.rs` | values of a page in any encoding |
//! | `columns.rs` | batches of decoded columns |

pub(crate) mod columns;
mod decode;
pub(crate) mod footer;
mod page;
pub(crate) mod source;
mod thrift;
pub(crate) mod values;
