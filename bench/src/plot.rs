//! Draws bar charts (SVG): the median of each program with its range.

use std::ops::Range;
use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

/// The ratio of the longest to the shortest bar from which on the axis is logarithmic.
const WIDE: f64 = 40.0;

/// The figure of one program.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The name of the program.
    pub label: String,
    /// Whether the program is pronto, with which the others are compared.
    pub is_pronto: bool,
    /// The minimum, median and maximum of the runs, in the unit of the title.
    pub spread: (f64, f64, f64),
}

/// Draws `bars` into the file `path`, with the first bar at the top.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write(path: &Path, title: &str, bars: &[Bar]) -> Result<(), String> {
    let longest = bars.iter().map(|bar| bar.spread.2).fold(0.0, f64::max);
    let shortest = bars.iter().map(|bar| bar.spread.0).fold(f64::MAX, f64::min);
    let drawn = if shortest > 0.0 && longest / shortest > WIDE {
        let title = format!("{title} (logarithmic)");
        let least = shortest / 2.0;
        draw(
            path,
            &title,
            bars,
            (least..longest * 1.5).log_scale(),
            least,
        )
    } else {
        draw(path, title, bars, 0.0..longest * 1.05, 0.0)
    };
    drawn.map_err(|error| format!("cannot plot: {error}"))
}

fn draw<X>(
    path: &Path,
    title: &str,
    bars: &[Bar],
    axis: X,
    start: f64,
) -> Result<(), Box<dyn std::error::Error>>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let height = 90 + 34 * bars.len() as u32;
    let root = SVGBackend::new(path, (900, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let rows: Range<i32> = 0..bars.len() as i32 - 1;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(150)
        .build_cartesian_2d(axis, rows.into_segmented())?;
    let label = |slot: &SegmentValue<i32>| match slot {
        SegmentValue::CenterOf(row) | SegmentValue::Exact(row) => bars
            .get(bars.len() - 1 - (*row).clamp(0, bars.len() as i32 - 1) as usize)
            .map_or(String::new(), |bar| bar.label.clone()),
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_label_formatter(&label)
        .y_labels(bars.len())
        .draw()?;
    for (row, bar) in bars.iter().rev().enumerate() {
        let (least, median, most) = bar.spread;
        let colour = if bar.is_pronto {
            RGBColor(0, 110, 200)
        } else {
            RGBColor(150, 150, 150)
        };
        let (low, high) = (
            SegmentValue::Exact(row as i32),
            SegmentValue::Exact(row as i32 + 1),
        );
        let mut filled = Rectangle::new([(start, low), (median, high)], colour.filled());
        filled.set_margin(4, 4, 0, 0);
        chart.draw_series([filled])?;
        let middle = SegmentValue::CenterOf(row as i32);
        chart.draw_series([PathElement::new(
            vec![(least, middle.clone()), (most, middle)],
            BLACK,
        )])?;
    }
    root.present()?;
    Ok(())
}
