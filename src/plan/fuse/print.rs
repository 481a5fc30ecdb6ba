//! Programs as text that a person can review.

use std::fmt::{self, Display, Formatter};

use super::program::{
    Access, Body, BufferId, Program, RowResult, RowStep, Rows, Scalar, Source, Stage, Width,
};
use crate::graph::chain::expr::{Expr, Term, TermId};

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
                .position(|output| *output == stage.buffer);
            print_stage(f, stage, result)?;
        }
        Ok(())
    }
}

/// What it computes, without where from and where to.
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
        }
    }
}

fn print_stage(f: &mut Formatter<'_>, stage: &Stage, result: Option<usize>) -> fmt::Result {
    write!(f, "dispatch {stage}")?;
    f.write_str(" ")?;
    let mut sources: Vec<Source> = stage.loads.iter().map(|load| load.source).collect();
    sources.dedup();
    for (i, source) in sources.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        source.fmt(f)?;
    }
    f.write_str(" -> ")?;
    match result {
        Some(0) => f.write_str("result"),
        Some(output) => write!(f, "result{output}"),
        None => stage.buffer.fmt(f),
    }
}

fn print_rows(f: &mut Formatter<'_>, names: &Names<'_>, rows: &Rows) -> fmt::Result {
    f.write_str(match rows.width {
        Width::Thread => "rows(",
        Width::Group => "wide rows(",
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
    f.write_str(if rows.is_cut { ") of chunks" } else { ")" })
}

/// What the variables of a stage are called.
struct Names<'a> {
    stage: &'a Stage,
}

impl Names<'_> {
    /// An expression in one line; what it uses twice has a name.
    fn expression(&self, f: &mut Formatter<'_>, expr: &Expr) -> fmt::Result {
        let terms = expr.terms();
        let mut uses = vec![0; terms.len()];
        for operand in terms.iter().flat_map(|term| term.operands()) {
            uses[operand.index()] += 1;
        }
        let is_named = |id: usize| uses[id] > 1 && !matches!(terms[id], Term::Variable(_));
        for id in (0..terms.len()).filter(|id| is_named(*id)) {
            write!(f, "t{id} = ")?;
            self.term(f, (terms, &is_named), (TermId(id as u32), true))?;
            f.write_str("; ")?;
        }
        let last = TermId(terms.len() as u32 - 1);
        self.term(f, (terms, &is_named), (last, true))
    }

    fn term(
        &self,
        f: &mut Formatter<'_>,
        (terms, is_named): (&[Term], &dyn Fn(usize) -> bool),
        (id, is_top): (TermId, bool),
    ) -> fmt::Result {
        if !is_top && is_named(id.index()) {
            return write!(f, "t{}", id.0);
        }
        let operand =
            |f: &mut Formatter<'_>, id, is_top| self.term(f, (terms, is_named), (id, is_top));
        match terms[id.index()] {
            Term::Variable(variable) => self.variable(f, variable as usize),
            Term::Unary(function, a) => {
                write!(f, "{}(", function.name())?;
                operand(f, a, true)?;
                f.write_str(")")
            }
            Term::Binary(function, a, b) => match function.sign() {
                Some(sign) => {
                    f.write_str(if is_top { "" } else { "(" })?;
                    operand(f, a, false)?;
                    f.write_str(sign)?;
                    operand(f, b, false)?;
                    f.write_str(if is_top { "" } else { ")" })
                }
                None => {
                    write!(f, "{}(", function.name())?;
                    operand(f, a, false)?;
                    f.write_str(", ")?;
                    operand(f, b, false)?;
                    f.write_str(")")
                }
            },
        }
    }

    fn variable(&self, f: &mut Formatter<'_>, variable: usize) -> fmt::Result {
        let loads = self.stage.loads.len();
        let scalars = self.stage.scalars.len();
        if let Some(load) = self.stage.loads.get(variable) {
            load.source.fmt(f)?;
            return match load.access {
                Access::Flat => Ok(()),
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
            Source::Resident(index) => write!(f, "tensor{index}"),
            Source::Buffer(buffer) => buffer.fmt(f),
        }
    }
}

impl Display for BufferId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}
