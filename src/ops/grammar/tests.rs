//! Formulas and what is wrong with them, as text.

use super::*;

fn text(formula: &str) -> String {
    match parse("f", formula, &["x", "y"]) {
        Ok(expr) => expr.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn formulas_become_terms() {
    let cases = [
        ("x", "v0"),
        (" 2 ", "f32(2)"),
        ("1e3", "f32(1000)"),
        ("2.5e-1", "bitcast<f32>(1048576000u)"),
        (".5", "bitcast<f32>(1056964608u)"),
        ("pi", "bitcast<f32>(1078530011u)"),
        ("x + y", "v0 + v1"),
        ("x - y - x", "(v0 - v1) - v0"),
        ("x + y * 2", "v0 + (v1 * f32(2))"),
        ("(x + y) * 2", "(v0 + v1) * f32(2)"),
        ("x / y / 2", "(v0 / v1) / f32(2)"),
        ("-x", "neg(v0)"),
        ("-3", "f32(-3)"),
        ("x - -3", "v0 - f32(-3)"),
        ("-x^2", "neg(v0 * v0)"),
        ("2^-1", "recip(f32(2))"),
        ("x^3", "(v0 * v0) * v0"),
        ("x^0", "f32(1)"),
        ("x^1", "v0"),
        ("x^-2", "recip(v0 * v0)"),
        ("x^y", "pow(v0, v1)"),
        ("x^y^2", "pow(v0, (v1 * v1))"),
        ("pow(x, 2)", "v0 * v0"),
        ("x^0.5", "pow(v0, bitcast<f32>(1056964608u))"),
        ("max(x, min(y, 1))", "maximum(v0, minimum(v1, f32(1)))"),
        ("cos(x)*cos(x)", "t1 = cos(v0); t1 * t1"),
        ("(x + 1) * (x + 1)", "t2 = v0 + f32(1); t2 * t2"),
        ("tan(recip(x))", "tan(recip(v0))"),
    ];
    for (formula, terms) in cases {
        assert_eq!(text(formula), terms, "{formula}");
        let expr = parse("f", formula, &["x", "y"]).expect("a formula");
        let terms = expr.terms();
        let is_used = |id: usize| {
            let mut operands = terms.iter().flat_map(|term| term.operands());
            operands.any(|operand| operand.index() == id)
        };
        // Or formulas that mean the same would not merge.
        let unused = (0..terms.len() - 1).find(|id| !is_used(*id));
        assert_eq!(unused, None, "{formula}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases = [
        (
            "",
            "f: expected a number, a name or '(', but it ends at character 1, in ''",
        ),
        (
            "x *",
            "f: expected a number, a name or '(', but it ends at character 4, in 'x *'",
        ),
        (
            "x y",
            "f: expected an operator or the end, but found 'y' at character 3, in 'x y'",
        ),
        ("(x", "f: expected ')', but it ends at character 3, in '(x'"),
        (
            "x)",
            "f: expected an operator or the end, but found ')' at character 2, in 'x)'",
        ),
        (
            "sin x",
            "f: expected '(', but found 'x' at character 5, in 'sin x'",
        ),
        (
            "min(x)",
            "f: expected ',', but found ')' at character 6, in 'min(x)'",
        ),
        (
            "sin(x, y)",
            "f: expected ')', but found ',' at character 6, in 'sin(x, y)'",
        ),
        (
            "2 * é",
            "f: expected a number, a name or '(', but found 'é' at character 5, in '2 * é'",
        ),
        (
            "é",
            "f: expected a number, a name or '(', but found 'é' at character 1, in 'é'",
        ),
        (
            ".",
            "f: expected a digit, but it ends at character 2, in '.'",
        ),
        (
            "1e+",
            "f: expected a digit, but it ends at character 4, in '1e+'",
        ),
        (
            "1e99",
            "f: the number is too large for 32 bits at character 1, in '1e99'",
        ),
        (
            "x + z1",
            "f: there is no 'z1'; known are pi, x, y, neg, recip, abs, sqrt, exp, log, sin, cos, tan, \
             tanh, add, sub, mul, div, min, max, pow at character 5, in 'x + z1'",
        ),
    ];
    for (formula, problem) in cases {
        assert_eq!(text(formula), problem);
    }
}

#[test]
fn formulas_without_end_are_refused_and_not_followed() {
    for deep in ["(", "-", "sin(", "2^"].map(|part| part.repeat(100_000)) {
        assert!(text(&deep).contains("nested too deeply at character"));
    }
    let long = (0..300).fold(String::from("x"), |sum, k| sum + &format!("+{k}"));
    assert!(text(&long).contains("it is too long"));
}

#[test]
fn numbers_are_those_of_the_standard_library() {
    let numbers = [
        "0.1",
        "1.17549435e-38",
        "3.4028235e38",
        "16777217",
        "0.333333343",
        "123456.789e-3",
        "1e-40",
        "9e-46",
        "0.00000000000000000000000000000000000001",
        "340282350000000000000000000000000000000",
    ];
    for number in numbers {
        let want: f32 = number.parse().expect("a number");
        let expr = parse("f", number, &[]).expect("a number");
        assert_eq!(expr.terms(), [Term::Const(want.to_bits())], "{number}");
    }
}
