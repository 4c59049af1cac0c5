//! An hour's rows become its files: Parquet, time index, sidecar (gateway/docs/archive.md §1).
//!
//! The sidecar is written last. A stop or a crash before it leaves an hour that is not valid and is made again.

use super::checks::{Checks, Findings, Sides};
use super::hours::{hour_of_name, hour_text};
use super::tally::{GAPS_MAX, Gap};
use crate::tape::Origin;
use archive::read::HourFile;
use archive::row::{Condition, Kind, Row};
use archive::write::{HourWriter, Written};
use engine::time::Timestamp;
use host::thread::Stop;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
