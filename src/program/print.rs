//! Programs as text that a person can review.

use std::fmt::{self, Display, Formatter};

use super::formula::show;
use super::{
    Access, Body, BufferId, Load, Program, RowResult, RowStep, Rows, Scalar, Source, Stage, Target,
    Width,
};
use crate::graph::Expr;

/// One line for each stage.
impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, stage) in self.stages.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            let result = self
                .outputs
                .iter()
                .position(|output| Some(*output) == stage.buffer());
            print_stage(f, stage, result)?;
        }
        Ok(())
    }
}

/// Prints what the stage computes, without what it reads and writes.
impl Display for Stage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = Names { stage: self };
        match &self.body {
            Body::Map(map) => {
                f.write_str("map(")?;
                names.expression(f, &map.value)?;
                f.write_str(if map.is_strided { ") as a part" } else { ")" })
            }
            Body::Rows(rows) => print_rows(f, &names, rows),
            Body::Attention(of) => {
                let [q, k, v] = of.loads.map(|load| self.loads[load as usize].source);
                let causal = if of.is_causal { "causal " } else { "" };
                write!(f, "{causal}attention({q}, {k}, {v}")?;
                if let Some(bias) = of.bias {
                    write!(f, " + {}", self.loads[bias as usize].source)?;
                }
                write!(f, "; {} x {}", of.heads, of.size)?;
                if let Some(window) = of.window {
                    write!(f, ", within {window}")?;
                }
                match of.sharing {
                    1 => f.write_str(")"),
                    sharing => write!(f, ", {sharing} for each head of keys)"),
                }
            }
            Body::Named(kernel, _) => f.write_str(kernel.name()),
            Body::Search(_) => f.write_str("search"),
        }
    }
}

fn print_stage(f: &mut Formatter<'_>, stage: &Stage, result: Option<usize>) -> fmt::Result {
    write!(f, "dispatch {stage}")?;
    f.write_str(" ")?;
    let mut loads: Vec<Load> = stage.loads.clone();
    loads.dedup_by_key(|load| load.source);
    for (i, load) in loads.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        print_source(f, *load)?;
    }
    f.write_str(" -> ")?;
    match result {
        Some(0) => f.write_str("result"),
        Some(output) => write!(f, "result{output}"),
        None => stage.target.fmt(f),
    }
}

fn print_rows(f: &mut Formatter<'_>, names: &Names<'_>, rows: &Rows) -> fmt::Result {
    f.write_str(match rows.width {
        Width::Thread => "rows(",
        Width::Group => "wide rows(",
        Width::Tile(_) => "tiles(",
    })?;
    for (i, step) in rows.steps.iter().enumerate() {
        write!(f, "r{i} = ")?;
        match step {
            RowStep::Fold(fold, value) => {
                f.write_str(fold.name())?;
                f.write_str("(")?;
                names.expression(f, value)?;
                f.write_str(")")?;
            }
            RowStep::Let(value) => names.expression(f, value)?,
        }
        f.write_str("; ")?;
    }
    match &rows.result {
        RowResult::Row(value) => names.expression(f, value)?,
        RowResult::Element(value) => {
            f.write_str("each ")?;
            names.expression(f, value)?;
        }
    }
    // `explain` shows this text to callers, for whom strips have been chunks of rows.
    f.write_str(if rows.is_cut { ") of chunks" } else { ")" })
}

fn print_source(f: &mut Formatter<'_>, load: Load) -> fmt::Result {
    load.source.fmt(f)?;
    match load.packing {
        Some(packing) => write!(f, ":{}", packing.name()),
        None => Ok(()),
    }
}

/// Names the variables of a stage.
struct Names<'a> {
    stage: &'a Stage,
}

impl Names<'_> {
    fn expression(&self, f: &mut Formatter<'_>, expr: &Expr) -> fmt::Result {
        show(f, expr, &|f, variable| self.variable(f, variable))
    }

    fn variable(&self, f: &mut Formatter<'_>, variable: usize) -> fmt::Result {
        let loads = self.stage.loads.len();
        let scalars = self.stage.scalars.len();
        if let Some(load) = self.stage.loads.get(variable) {
            print_source(f, *load)?;
            return match load.access {
                Access::Flat | Access::Found | Access::Whole => Ok(()),
                Access::Strided if matches!(self.stage.body, Body::Rows(_)) => Ok(()),
                Access::Strided => f.write_str("~"),
                Access::Indexed(index) => {
                    f.write_str("[")?;
                    self.variable(f, index as usize)?;
                    f.write_str("]")
                }
            };
        }
        match self.stage.scalars.get(variable - loads) {
            Some(Scalar::Constant(index)) => write!(f, "c{index}"),
            Some(Scalar::Count) => f.write_str("count"),
            None => write!(f, "r{}", variable - loads - scalars),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Source::Input(index) => write!(f, "in{index}"),
            Source::Scalar => f.write_str("t"),
            Source::Resident(index) => write!(f, "tensor{index}"),
            Source::Buffer(buffer) => buffer.fmt(f),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Target::Buffer(buffer) => buffer.fmt(f),
            Target::Resident(index) => write!(f, "tensor{index}"),
        }
    }
}

impl Display for BufferId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}
