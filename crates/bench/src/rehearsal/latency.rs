//! Urgent payments' latencies, by when they were due.

use std::time::{Duration, Instant};

use super::report::{Latency, Moment};
use crate::cluster::Answered;
use crate::measure::quantile;

/// The most points of a series, so that a picture can show each.
const MOMENTS_MAX: f64 = 400.0;
/// The shortest piece of a series.
const MOMENT_MIN_S: f64 = 0.1;

/// Of those that were due from `from` on and before `to`.
pub(super) fn between(answers: &[Answered], from: Instant, to: Instant) -> Latency {
    let due = answers
        .iter()
        .filter(|answer| answer.due >= from && answer.due < to);
    of(&due.map(ms).collect::<Vec<f64>>())
}

/// Of all.
pub(super) fn all(answers: &[Answered]) -> Latency {
    of(&answers.iter().map(ms).collect::<Vec<f64>>())
}

fn ms(answer: &Answered) -> f64 {
    answer
        .at
        .saturating_duration_since(answer.due)
        .as_secs_f64()
        * 1e3
}

fn of(ms: &[f64]) -> Latency {
    if ms.is_empty() {
        return Latency::default();
    }
    Latency {
        count: ms.len() as u64,
        average_ms: ms.iter().sum::<f64>() / ms.len() as f64,
        p50_ms: quantile(ms, 0.5),
        p90_ms: quantile(ms, 0.9),
        p99_ms: quantile(ms, 0.99),
        p999_ms: quantile(ms, 0.999),
        max_ms: quantile(ms, 1.0),
    }
}

/// Latencies over time, in equal pieces.
pub(super) fn series(answers: &[Answered], begun: Instant) -> Vec<Moment> {
    let last = answers.iter().map(|answer| answer.due).max();
    let span = last.map_or(Duration::ZERO, |last| last.saturating_duration_since(begun));
    let piece_s = (span.as_secs_f64() / MOMENTS_MAX).max(MOMENT_MIN_S);
    let mut pieces: std::collections::BTreeMap<u64, Vec<f64>> = std::collections::BTreeMap::new();
    for answer in answers {
        let at_s = answer.due.saturating_duration_since(begun).as_secs_f64();
        // It is not negative and small: whole pieces of a run.
        let piece = Duration::from_secs_f64(at_s / piece_s).as_secs();
        pieces.entry(piece).or_default().push(ms(answer));
    }
    let moments = pieces.into_iter().map(|(piece, values)| Moment {
        at_s: piece as f64 * piece_s,
        count: values.len() as u64,
        p50_ms: quantile(&values, 0.5),
        max_ms: quantile(&values, 1.0),
    });
    moments.collect()
}
