//! Families of the text format: a name with its unit, its help text, and rows with bounded labels.

use host::histogram::Counted;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt::Error;

/// One family. Its name is that of its rows, with `_seconds` or `_bytes` if it has such a unit and `_total` if it only
/// rises.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub name: &'static str,
    pub help: &'static str,
}

/// Labels of one row: names and values, both from bounded sets.
pub type Labels<'a> = [(&'a str, &'a str)];

impl Family {
    pub const fn new(name: &'static str, help: &'static str) -> Family {
        Family { name, help }
    }

    /// The name without unit, and the unit: the encoder joins them again.
    fn parts(&self) -> (&'static str, Option<Unit>) {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        if let Some(name) = name.strip_suffix("_seconds") {
            return (name, Some(Unit::Seconds));
        }
        name.strip_suffix("_bytes").map_or((name, None), |name| (name, Some(Unit::Bytes)))
    }
}

/// Writes families, one after the other.
#[derive(Debug)]
pub struct Writer<'a>(DescriptorEncoder<'a>);

impl<'a> Writer<'a> {
    pub fn new(encoder: DescriptorEncoder<'a>) -> Writer<'a> {
        Writer(encoder)
    }

    /// Writes a present value.
    pub fn gauge(&mut self, family: &Family, value: impl EncodeGaugeValue) -> Result<(), Error> {
        self.gauges(family, [(&[][..], value)])
    }

    pub fn gauges<'l, V: EncodeGaugeValue>(
        &mut self,
        family: &Family,
        rows: impl IntoIterator<Item = (&'l Labels<'l>, V)>,
    ) -> Result<(), Error> {
        self.rows(family, MetricType::Gauge, rows, |row, value| row.encode_gauge(&value))
    }

    /// Writes a count that only rises, from 0 at each start of the process.
    pub fn counter(&mut self, family: &Family, value: impl EncodeCounterValue) -> Result<(), Error> {
        self.counters(family, [(&[][..], value)])
    }

    pub fn counters<'l, V: EncodeCounterValue>(
        &mut self,
        family: &Family,
        rows: impl IntoIterator<Item = (&'l Labels<'l>, V)>,
    ) -> Result<(), Error> {
        self.rows(family, MetricType::Counter, rows, |row, value| {
            row.encode_counter::<NoLabelSet, V, u64>(&value, None)
        })
    }

    /// Writes present values by those of one label.
    pub fn gauges_by<'l, V: EncodeGaugeValue + Copy>(
        &mut self,
        family: &Family,
        label: &'l str,
        rows: impl IntoIterator<Item = (&'l str, V)>,
    ) -> Result<(), Error> {
        let rows: Vec<_> = rows.into_iter().map(|(of, value)| ([(label, of)], value)).collect();
        self.gauges(family, rows.iter().map(|(labels, value)| (&labels[..], *value)))
    }

    /// Writes counts by the values of one label.
    pub fn counters_by<'l, V: EncodeCounterValue + Copy>(
        &mut self,
        family: &Family,
        label: &'l str,
        rows: impl IntoIterator<Item = (&'l str, V)>,
    ) -> Result<(), Error> {
        let rows: Vec<_> = rows.into_iter().map(|(of, count)| ([(label, of)], count)).collect();
        self.counters(family, rows.iter().map(|(labels, count)| (&labels[..], *count)))
    }

    /// Writes durations.
    pub fn histograms<'l>(
        &mut self,
        family: &Family,
        rows: impl IntoIterator<Item = (&'l Labels<'l>, Counted)>,
    ) -> Result<(), Error> {
        self.rows(family, MetricType::Histogram, rows, |row, value| {
            row.encode_histogram::<NoLabelSet>(value.sum_seconds, value.count, &value.buckets, None)
        })
    }

    /// Writes constant texts.
    pub fn words(&mut self, family: &Family, labels: &Labels<'_>) -> Result<(), Error> {
        let name = family.name.strip_suffix("_info").unwrap_or(family.name);
        self.0.encode_descriptor(name, family.help, None, MetricType::Info)?.encode_info(&labels)
    }

    fn rows<'l, V>(
        &mut self,
        family: &Family,
        kind: MetricType,
        rows: impl IntoIterator<Item = (&'l Labels<'l>, V)>,
        write: impl Fn(&mut MetricEncoder<'_>, V) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (name, unit) = family.parts();
        let mut encoder = self.0.encode_descriptor(name, family.help, unit.as_ref(), kind)?;
        rows.into_iter().try_for_each(|(labels, value)| match labels {
            [] => write(&mut encoder, value),
            labels => write(&mut encoder.encode_family(&labels)?, value),
        })
    }
}
