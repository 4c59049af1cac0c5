//! Reading of Parquet files by the `parquet` library, with every size checked before the library allocates by it.
//!
//! The library trusts the counts of a footer and the sizes of page headers. [`vet`] walks both first, so that a hostile
//! file is refused and not allocated.
//!
//! | File | Holds |
//! |---|---|
//! | `source.rs` | bytes of a file, by position |
//! | `vet.rs` | checks of Thrift data before the library reads it |
//! | `footer.rs` | metadata of a file, and its bounds |
//! | `pages.rs` | pages of a column, and the bounds of what they become |
//! | `columns.rs` | batches of decoded columns |

pub(crate) mod columns;
pub(crate) mod footer;
mod pages;
pub(crate) mod source;
mod vet;
