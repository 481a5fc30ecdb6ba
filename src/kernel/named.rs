//! The text of named kernels: each is a file of `shaders/`, behind the libraries that the file
//! uses.
//!
//! Facts about these kernels are in `program::named`.

use super::library::{FUNCTIONS, SEGMENTS_LIBRARY};
use super::{Named, expr, top_k_scan};

/// Complete WGSL source, libraries included.
pub(super) fn source(kernel: &Named) -> String {
    let (field, scan);
    let (library, body) = match kernel {
        Named::Lerp => ("", shader!("lerp")),
        Named::Slerp => (shader!("quaternion_arc"), shader!("slerp")),
        Named::Nlerp => ("", shader!("nlerp")),
        Named::Bezier => ("", shader!("bezier")),
        Named::StateGradients => ("", shader!("state_gradients")),
        Named::StateField(expr) => {
            let mut function = String::from("fn field(v0: F, v1: F, v2: F) -> F {\n");
            let value = expr::print(&mut function, expr, "t", usize::MAX);
            put!(&mut function, "return {value};\n}}");
            field = [shader!("math"), FUNCTIONS, &function].join("\n");
            (field.as_str(), shader!("state_field"))
        }
        Named::StateInterpolate => (shader!("states"), shader!("state_interpolate")),
        Named::StateSequence => (shader!("states"), shader!("state_sequence")),
        Named::StateBezier => ("", shader!("state_bezier")),
        Named::StateDistance => ("", shader!("state_distance")),
        Named::StateDescend => ("", shader!("state_descend")),
        Named::Clip => (shader!("quaternion_arc"), shader!("clip")),
        Named::TopKScan(of) => {
            scan = top_k_scan::source(of);
            (shader!("top_k_list"), scan.as_str())
        }
        Named::TopKMerge => (shader!("top_k_list"), shader!("top_k_merge")),
        Named::PackVectors => ("", shader!("pack_vectors")),
    };
    [SEGMENTS_LIBRARY, library, body].join("\n")
}
