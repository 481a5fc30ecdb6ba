//! Bodies of kernels as data, and their text in WGSL.
//!
//! What a body computes is in `evaluate`, and how one is made of random words in `random`.

use std::fmt::Write;

/// The function that a random body is of: `element` or `at`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// `element`, of the values `x0`, `x1`, and so on.
    Element,
    /// `at`, of a place in the inputs `a0`, `a1`, and so on.
    At,
}

/// A place of an input that a body of a place looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The body's own place times the first number, and so much further.
    Along(i32, i32),
    /// The body's own place, and as much further as the whole number that comes with the call.
    ByParam,
    /// The body's own row and column in the input, and so much further.
    Cell(i32, i32),
}

/// A condition: whether the first side is below the second, or not.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) is_below: bool,
    pub(crate) sides: Box<[Expr; 2]>,
}

/// A function of one number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unary {
    Negative,
    Abs,
    /// The root of the magnitude and a half.
    Sqrt,
    /// The exponential of the number, brought between -4 and 4.
    Exp,
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    /// By the magnitude of the second number and a half.
    Divide,
    Min,
    Max,
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Number(f32),
    /// A number that comes with the call.
    Param(usize),
    /// A value of `element`; in a helper one of its two arguments.
    Value(usize),
    /// What `at` finds at a place of an input.
    Look(usize, Place),
    /// What an earlier statement gave.
    Local(usize),
    /// In a loop: how many passes there were.
    Passes,
    /// In a loop: what the pass before gave.
    Carried,
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<[Expr; 2]>),
    /// The first where the condition holds, and otherwise the second.
    Select(Test, Box<[Expr; 2]>),
    /// A helper function of two numbers.
    Helper(usize, Box<[Expr; 2]>),
}

/// How a loop is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    For,
    While,
    Loop,
}

/// A loop of a fixed number of passes, one of which may be skipped by `continue`.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) style: Style,
    pub(crate) passes: u32,
    pub(crate) skipped: Option<u32>,
    pub(crate) start: Expr,
    pub(crate) step: Expr,
}

/// A statement, which gives a local value.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Let(Expr),
    If(Test, Box<[Expr; 2]>),
    Loop(Loop),
}

/// A kernel's function and its helpers.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) form: Form,
    /// How many values or inputs there are.
    pub(crate) inputs: usize,
    /// Helpers may call those before them.
    pub(crate) helpers: Vec<Expr>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) result: Expr,
}

/// The names and types of the params of every body.
pub(crate) const PARAMS: [(&str, &str); 3] = [("p0", "f32"), ("p1", "i32"), ("p2", "u32")];

impl Body {
    pub(crate) fn has_loops(&self) -> bool {
        let is_loop = |statement: &Statement| matches!(statement, Statement::Loop(_));
        self.statements.iter().any(is_loop)
    }

    /// The code of a kernel.
    pub(crate) fn wgsl(&self) -> String {
        let mut code = String::new();
        // Helpers of places have a place, too; and all have arguments named as values are.
        let place = match self.form {
            Form::Element => "",
            Form::At => "i: i32, ",
        };
        for (at, helper) in self.helpers.iter().enumerate() {
            let returned = self.print(helper);
            writeln!(
                code,
                "fn helper{at}({place}x0: f32, x1: f32) -> f32 {{ return {returned}; }}"
            )
            .unwrap();
        }
        let values = (0..self.inputs).map(|at| format!("x{at}: f32"));
        let parameters = match self.form {
            Form::Element => values.collect::<Vec<_>>().join(", "),
            Form::At => "i: i32".into(),
        };
        let name = match self.form {
            Form::Element => "element",
            Form::At => "at",
        };
        writeln!(code, "fn {name}({parameters}) -> f32 {{").unwrap();
        for (at, statement) in self.statements.iter().enumerate() {
            self.print_statement(&mut code, at, statement);
        }
        writeln!(code, "  return {};\n}}", self.print(&self.result)).unwrap();
        code
    }

    fn print_statement(&self, code: &mut String, at: usize, statement: &Statement) {
        let text = match statement {
            Statement::Let(expr) => format!("  let l{at} = {};", self.print(expr)),
            Statement::If(test, sides) => {
                let [then, other] = [0, 1].map(|side| self.print(&sides[side]));
                let test = self.print_test(test);
                format!(
                    "  var l{at} = 0.0;\n  if {test} {{ l{at} = {then}; }} else {{ let x = {other}; l{at} = x; }}"
                )
            }
            Statement::Loop(of) => {
                let start = format!("  var l{at} = {};\n", self.print(&of.start));
                // The names of the loop's own variables are those of every loop.
                let step = format!("let carried = l{at}; l{at} = {};", self.print(&of.step));
                let skip = |count: &str| {
                    let skip = |pass| format!("if {count} == {pass} {{ continue; }} ");
                    of.skipped.map(skip).unwrap_or_default()
                };
                let passes = of.passes;
                start
                    + &match of.style {
                        Style::For => format!(
                            "  for (var k = 0; k < {passes}; k++) {{ {}{step} }}",
                            skip("k")
                        ),
                        Style::While => format!(
                            "  {{ var n = 0; while n < {passes} {{ let k = n; n++; {}{step} }} }}",
                            skip("k")
                        ),
                        Style::Loop => format!(
                            "  {{ var k = 0; loop {{ if k >= {passes} {{ break; }} {}{step} continuing {{ k++; }} }} }}",
                            skip("k")
                        ),
                    }
            }
        };
        writeln!(code, "{text}").unwrap();
    }

    fn print(&self, expr: &Expr) -> String {
        let both = |sides: &[Expr; 2]| [0, 1].map(|side| self.print(&sides[side]));
        match expr {
            Expr::Number(number) => format!("f32({number:?})"),
            Expr::Param(at) => format!("f32(params.{})", PARAMS[*at].0),
            Expr::Value(at) => format!("x{at}"),
            Expr::Look(input, Place::Along(times, more)) => {
                format!("a{input}(i * {times} + {more})")
            }
            Expr::Look(input, Place::ByParam) => format!("a{input}(i + params.p1)"),
            Expr::Look(input, Place::Cell(rows, columns)) => format!(
                "a{input}_at(i / a{input}_cols() + {rows}, i % a{input}_cols() + {columns})"
            ),
            Expr::Local(at) => format!("l{at}"),
            Expr::Passes => "f32(k)".into(),
            Expr::Carried => "carried".into(),
            Expr::Unary(function, of) => {
                let of = self.print(of);
                match function {
                    Unary::Negative => format!("(-{of})"),
                    Unary::Abs => format!("abs({of})"),
                    Unary::Sqrt => format!("sqrt(abs({of}) + 0.5)"),
                    Unary::Exp => format!("exp(clamp({of}, -4.0, 4.0))"),
                }
            }
            Expr::Binary(function, sides) => {
                let [a, b] = both(sides);
                match function {
                    Binary::Add => format!("({a} + {b})"),
                    Binary::Subtract => format!("({a} - {b})"),
                    Binary::Multiply => format!("({a} * {b})"),
                    Binary::Divide => format!("({a} / (abs({b}) + 0.5))"),
                    Binary::Min => format!("min({a}, {b})"),
                    Binary::Max => format!("max({a}, {b})"),
                }
            }
            Expr::Select(test, sides) => {
                let [then, other] = both(sides);
                format!("select({other}, {then}, {})", self.print_test(test))
            }
            Expr::Helper(at, sides) => {
                let [a, b] = both(sides);
                let place = match self.form {
                    Form::Element => "",
                    Form::At => "i, ",
                };
                format!("helper{at}({place}{a}, {b})")
            }
        }
    }

    fn print_test(&self, test: &Test) -> String {
        let [a, b] = [0, 1].map(|side| self.print(&test.sides[side]));
        format!("({a} {} {b})", if test.is_below { "<" } else { ">=" })
    }
}
