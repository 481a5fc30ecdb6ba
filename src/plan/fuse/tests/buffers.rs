//! Programs as text: the values that are kept in buffers, and the stages that share one.

use super::*;

#[test]
fn cheap_values_are_repeated_and_others_kept() {
    check(
        &[&[100], &[50]],
        |g, x| {
            let cheap = g.unary(UnaryFn::Relu, x[0])?;
            let up = g.unary(UnaryFn::Exp, cheap)?;
            let down = g.unary(UnaryFn::Log, cheap)?;
            Ok(vec![up, down])
        },
        "dispatch map(exp(relu(in0))) in0 -> result
         dispatch map(log(relu(in0))) in0 -> result1",
    );
    check(
        &[&[100]],
        |g, x| {
            let dear = g.unary(UnaryFn::Gelu, x[0])?;
            let up = g.unary(UnaryFn::Exp, dear)?;
            let down = g.unary(UnaryFn::Log, dear)?;
            Ok(vec![up, down])
        },
        "dispatch map(gelu(in0)) in0 -> b0
         dispatch map(exp(b0)) b0 -> result
         dispatch map(log(b0)) b0 -> result1",
    );
    // A result that other stages read too is copied, because all results share a device buffer.
    check(
        &[&[100]],
        |g, x| {
            let dear = g.unary(UnaryFn::Gelu, x[0])?;
            Ok(vec![dear, g.unary(UnaryFn::Exp, dear)?])
        },
        "dispatch map(gelu(in0)) in0 -> b0
         dispatch map(b0) b0 -> result
         dispatch map(exp(b0)) b0 -> result1",
    );
}

#[test]
fn the_last_reader_of_a_buffer_writes_there_if_it_can() {
    // Two stages read `twice`, and the first of the two must not overwrite it.
    check(
        &[&[100], &[100]],
        |g, x| {
            let twice = g.unary(UnaryFn::Gelu, x[0])?;
            let up = g.unary(UnaryFn::Exp, twice)?;
            let down = g.binary(BinaryFn::Div, twice, x[1])?;
            let ups = [g.unary(UnaryFn::Exp, up)?, g.unary(UnaryFn::Log, up)?];
            let downs = [g.unary(UnaryFn::Exp, down)?, g.unary(UnaryFn::Log, down)?];
            Ok([ups, downs].concat())
        },
        "dispatch map(gelu(in0)) in0 -> b0
         dispatch map(exp(b0)) b0 -> b1
         dispatch map(b0 / in1) b0, in1 -> b0
         dispatch map(exp(b1)) b1 -> result
         dispatch map(log(b1)) b1 -> result1
         dispatch map(exp(b0)) b0 -> result2
         dispatch map(log(b0)) b0 -> result3",
    );
    // No stage works in place where elements move, or where the buffers differ in length.
    check(
        &[&[10, 10]],
        |g, x| {
            let y = g.unary(UnaryFn::Gelu, x[0])?;
            let turned = g.transpose(y, &[])?;
            let moved = g.binary(BinaryFn::Div, y, turned)?;
            let part = g.slice(moved, &[(0, 4, 1)])?;
            let part = g.unary(UnaryFn::Gelu, part)?;
            Ok(vec![
                g.unary(UnaryFn::Exp, part)?,
                g.unary(UnaryFn::Log, part)?,
            ])
        },
        "dispatch map(gelu(in0)) in0 -> b0
         dispatch map(gelu(b0 / b0~)) b0 -> b1
         dispatch map(exp(b1)) b1 -> result
         dispatch map(log(b1)) b1 -> result1",
    );
    // No stage works in place where a result is an output twice, and so computed again at the end.
    check(
        &[&[100]],
        |g, x| {
            let y = g.unary(UnaryFn::Gelu, x[0])?;
            let down = g.unary(UnaryFn::Log, y)?;
            let up = g.unary(UnaryFn::Exp, y)?;
            let ups = [g.unary(UnaryFn::Exp, up)?, g.unary(UnaryFn::Log, up)?];
            Ok([[down, down], ups].concat())
        },
        "dispatch map(gelu(in0)) in0 -> b0
         dispatch map(log(b0)) b0 -> result
         dispatch map(exp(b0)) b0 -> b2
         dispatch map(exp(b2)) b2 -> result2
         dispatch map(log(b2)) b2 -> result3",
    );
}

#[test]
fn parts_of_a_concat_are_written_in_place() {
    check(
        &[&[3, 4], &[3, 5]],
        |g, x| {
            let a = g.unary(UnaryFn::Exp, x[0])?;
            let b = g.reduce(Reduction::Sum, x[1], Axes::of(&[1]).kept())?;
            Ok(vec![g.concat(&[a, b], 1)?])
        },
        "dispatch map(exp(in0)) as a part in0 -> result
         dispatch rows(r0 = sum(in1); r0) in1 -> result",
    );
}
