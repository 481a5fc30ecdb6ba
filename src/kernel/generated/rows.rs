//! Prints rows: a thread or a workgroup computes a row, in one loop for each fold.

use super::operands::{Reads, single};
use super::{coordinates, declare, scalars};
use crate::kernel::{Expr, Term, expr};
use crate::program::{Access, Fold, Layout, RowResult, RowStep, Rows, STRIP, Stage};

pub(super) fn body(stage: &Stage, layout: &Layout, rows: &Rows) -> String {
    let mut text = declare(stage, layout, Reads::Single, "u32");
    text += "fn compute(entry: u32, row: u32, lane: u32) {\n";
    put!(
        &mut text,
        "let count = operand(entry, {}u);\n",
        layout.count
    );
    if rows.is_cut {
        put!(
            &mut text,
            "let strips = operand(entry, {}u);\n",
            layout.strips
        );
        put!(&mut text, "let first = (row % strips) * {STRIP}u;\n");
        put!(&mut text, "let n = min({STRIP}u, count - first);\n");
        text += "let place = row / strips;\n";
    } else {
        text += "let first = 0u;\n";
        // Fusion folds longer rows in strips; the bound ends the loop whatever the entry holds.
        put!(&mut text, "let n = min({STRIP}u, count);\n");
        text += "let place = row;\n";
    }
    coordinates(&mut text, "o", "place", rows.outer, layout.outer);
    let printer = Printer {
        stage,
        layout,
        rows,
        first: stage.loads.len() + stage.scalars.len(),
    };
    for load in 0..stage.loads.len() {
        printer.begin_load(&mut text, load);
    }
    text += &scalars(stage, layout);
    for (step, of) in rows.steps.iter().enumerate() {
        match of {
            RowStep::Fold(fold, value) => printer.fold(&mut text, step, *fold, value),
            RowStep::Let(value) => {
                let value = expr::print(&mut text, value, &format!("s{step}t"), printer.first);
                put!(&mut text, "let r{step} = {value};\n");
            }
        }
    }
    printer.result(&mut text);
    text + "}"
}

struct Printer<'a> {
    stage: &'a Stage,
    layout: &'a Layout,
    rows: &'a Rows,
    /// The number of the first variable that is the value of a step.
    first: usize,
}

impl Printer<'_> {
    /// Prints where a load begins in the row, and reads the load if it is one value for the row.
    fn begin_load(&self, text: &mut String, load: usize) {
        let strides = self.layout.strides[load];
        put!(text, "let b{load} = operand(entry, {load}u)");
        for axis in 0..self.rows.outer {
            put!(text, " + o{axis} * operand(entry, {}u)", strides + axis);
        }
        *text += ";\n";
        if self.rows.is_row[load] {
            self.read(text, load, &format!("b{load}"));
            return;
        }
        for axis in 0..self.rows.inner {
            let word = strides + self.rows.outer + axis;
            put!(text, "let b{load}s{axis} = operand(entry, {word}u);\n");
        }
    }

    /// Prints the lines that read a load at a place.
    fn read(&self, text: &mut String, load: usize, at: &str) {
        let of = &self.stage.loads[load];
        let value = match of.access {
            Access::Flat | Access::Strided | Access::Found | Access::Whole => single(of, at),
            Access::Indexed(index) => {
                let step = self.layout.strides[load] + self.rows.outer + self.rows.inner;
                let limit = step + 1;
                put!(text, "let x{load} = bitcast<u32>(v{index});\n");
                let at = format!("{at} + x{load} * operand(entry, {step}u)");
                let is_outside = format!("x{load} >= operand(entry, {limit}u)");
                let inside = single(of, &at);
                format!("select({inside}, x{load} | 0x7fc00000u, {is_outside})")
            }
        };
        put!(text, "let v{load} = bitcast<f32>({value});\n");
    }

    /// Begins a loop over the row's elements that computes an expression, and returns the name of
    /// the expression's value.
    fn each(&self, text: &mut String, expr: &Expr, prefix: &str) -> String {
        *text += "for (var j = lane; j < n; j += LANES) {\n";
        let (rank, dims) = (self.rows.inner, self.layout.inner);
        coordinates(text, "i", "(first + j)", rank, dims);
        for load in 0..self.stage.loads.len() {
            if !self.rows.is_row[load] && self.is_used(expr, load) {
                let mut at = format!("b{load}");
                for axis in 0..self.rows.inner {
                    put!(&mut at, " + i{axis} * b{load}s{axis}");
                }
                self.read(text, load, &at);
            }
        }
        expr::print(text, expr, prefix, self.first)
    }

    /// Whether an expression needs a load: as a variable, or as the index of one.
    fn is_used(&self, expr: &Expr, load: usize) -> bool {
        let names = |load: usize| expr.terms().contains(&Term::Variable(load as u32));
        let mut loads = self.stage.loads.iter().enumerate();
        names(load)
            || loads.any(|(other, of)| of.access == Access::Indexed(load as u32) && names(other))
    }

    fn fold(&self, text: &mut String, step: usize, fold: Fold, value: &Expr) {
        let start = match fold {
            Fold::Sum => "0.0",
            Fold::Max => "0u",
            Fold::Min | Fold::First | Fold::Least => "0xffffffffu",
        };
        put!(text, "var a{step} = {start};\n");
        let value = self.each(text, value, "t");
        let (taken, folded) = match fold {
            Fold::Sum => (
                format!("a{step} += {value}"),
                format!("fold_sum(lane, a{step})"),
            ),
            Fold::Max => (
                format!("a{step} = max(a{step}, top_key({value}))"),
                format!("from_key(fold_max(lane, a{step}))"),
            ),
            Fold::Min => (
                format!("a{step} = min(a{step}, bottom_key({value}))"),
                format!("from_key(fold_min(lane, a{step}))"),
            ),
            Fold::First | Fold::Least => {
                let key = match fold {
                    Fold::First => format!("select(0xffffffffu, first + j, {value} != 0.0)"),
                    _ => format!("bitcast<u32>({value})"),
                };
                (
                    format!("a{step} = min(a{step}, {key})"),
                    format!("bitcast<f32>(fold_min(lane, a{step}))"),
                )
            }
        };
        put!(text, "{taken};\n}}\nlet r{step} = {folded};\n");
    }

    fn result(&self, text: &mut String) {
        let mut base = String::from("result(entry)");
        if self.rows.is_cut {
            base += " + row";
        } else {
            for axis in 0..self.rows.outer {
                base += &format!(
                    " + o{axis} * operand(entry, {}u)",
                    self.layout.result + axis
                );
            }
        }
        match &self.rows.result {
            RowResult::Row(value) => {
                let value = expr::print(text, value, "t", self.first);
                put!(
                    text,
                    "if lane == 0u {{ output[{base}] = bitcast<u32>({value}); }}\n"
                );
            }
            RowResult::Element(value) => {
                put!(text, "let base = {base};\n");
                let value = self.each(text, value, "t");
                let mut at = String::from("base");
                for axis in 0..self.rows.inner {
                    let word = self.layout.result + self.rows.outer + axis;
                    put!(&mut at, " + i{axis} * operand(entry, {word}u)");
                }
                put!(text, "output[{at}] = bitcast<u32>({value});\n}}\n");
            }
        }
    }
}
