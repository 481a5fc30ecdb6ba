//! Plans as text that a person can review; `explain()` shows it.

use std::fmt::{self, Display, Formatter};

use super::{Dispatch, Operand, Plan, Slot, Step};
use crate::graph::Timing;
use crate::kernel::{Kernel, Named};
use crate::program::{Load, Tiles};

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("nothing to do");
        }
        for (i, step) in self.steps.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            step.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Step::Upload { slot, words, runs } => {
                write!(f, "upload   {slot} ({} bytes", u64::from(*words) * 4)?;
                match runs.len() {
                    1 => f.write_str(")"),
                    count => write!(f, " of {count} places)"),
                }
            }
            Step::Dispatch(dispatch) => dispatch.fmt(f),
            Step::Free { slot } => write!(f, "free     {slot}"),
            Step::Download { slot, words } => {
                write!(f, "download {slot} ({} bytes)", u64::from(*words) * 4)
            }
        }
    }
}

impl Display for Dispatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kernel {
            Kernel::Fused(stage) if stage.is_copy() => f.write_str("copy     ")?,
            Kernel::Fused(stage) => write!(f, "dispatch {stage} ")?,
            Kernel::Product(stage, _, tiles) => {
                let size = if *tiles == Tiles::Small { "small " } else { "" };
                write!(f, "dispatch {size}{stage} ")?;
            }
            kernel => write!(f, "dispatch {}", kernel.name())?,
        }
        if let Kernel::Named(Named::StateField(field)) = &self.kernel {
            write!(f, "[{field}]")?;
        }
        if self.settings.mode != 0 {
            write!(f, "#{}", self.settings.mode)?;
        }
        f.write_str("(")?;
        for (i, operand) in self.operands.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match operand {
                Operand::Rows { slot, .. } => slot.fmt(f)?,
                Operand::Scalar => f.write_str("t")?,
            }
        }
        let rows: u64 = self
            .segments
            .iter()
            .map(|segment| u64::from(segment.rows))
            .sum();
        let what = match self.kernel.is_by_row() {
            true => "rows",
            false => "threads",
        };
        write!(f, ") -> {}", self.output)?;
        if matches!(&self.kernel, Kernel::Fused(stage) | Kernel::Product(stage, ..) if stage.loads.iter().any(Load::is_in_place))
        {
            f.write_str(" in place")?;
        }
        write!(f, ", {} calls", self.calls)?;
        if self.segments.len() < self.calls as usize {
            write!(f, " as {}", self.segments.len())?;
        }
        write!(f, ", {rows} {what}")?;
        if self.settings.timing == Timing::Row {
            f.write_str(", a t for each row")?;
        }
        Ok(())
    }
}

impl Display for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.tensor() {
            Some(tensor) => write!(f, "tensor {tensor}"),
            None => write!(f, "s{}", self.0),
        }
    }
}
