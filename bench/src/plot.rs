//! One bar chart (SVG) for each scenario: the median wall time of each peer, with its spread.

use std::path::Path;

use plotters::prelude::*;

use crate::measure::Measured;

/// Writes `NAME-SCENARIO.svg` into `directory` for each scenario.
pub(crate) fn write(directory: &Path, name: &str, results: &[Measured]) -> Result<(), String> {
    let drawn: Vec<&Measured> = results.iter().filter(|m| !m.runs.is_empty()).collect();
    for group in drawn.chunk_by(|a, b| a.scenario == b.scenario) {
        let path = directory.join(format!("{name}-{}.svg", group[0].scenario));
        chart(&path, group).map_err(|error| format!("cannot plot: {error}"))?;
    }
    Ok(())
}

fn chart(path: &Path, group: &[&Measured]) -> Result<(), Box<dyn std::error::Error>> {
    let height = 90 + 34 * group.len() as u32;
    let root = SVGBackend::new(path, (900, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let longest = group
        .iter()
        .filter_map(|m| Some(m.spread(|run| run.wall_seconds)?.2))
        .fold(0.0, f64::max);
    let title = format!("{}: {}, wall seconds", group[0].scenario, group[0].what);
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(150)
        .build_cartesian_2d(
            0.0..longest * 1.05,
            (0..group.len() as i32 - 1).into_segmented(),
        )?;
    let label = |slot: &SegmentValue<i32>| match slot {
        SegmentValue::CenterOf(row) | SegmentValue::Exact(row) => group
            .get(group.len() - 1 - (*row).clamp(0, group.len() as i32 - 1) as usize)
            .map_or(String::new(), |measured| measured.peer.clone()),
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_label_formatter(&label)
        .y_labels(group.len())
        .draw()?;
    for (row, measured) in group.iter().rev().enumerate() {
        let spread = measured.spread(|run| run.wall_seconds);
        let (least, median, most) = spread.unwrap_or_default();
        let colour = if measured.is_pronto {
            RGBColor(0, 110, 200)
        } else {
            RGBColor(150, 150, 150)
        };
        let (low, high) = (
            SegmentValue::Exact(row as i32),
            SegmentValue::Exact(row as i32 + 1),
        );
        let mut bar = Rectangle::new([(0.0, low), (median, high)], colour.filled());
        bar.set_margin(4, 4, 0, 0);
        chart.draw_series([bar])?;
        let middle = SegmentValue::CenterOf(row as i32);
        chart.draw_series([PathElement::new(
            vec![(least, middle.clone()), (most, middle)],
            BLACK,
        )])?;
    }
    root.present()?;
    Ok(())
}
