//! What shape each operation gives, and what it refuses, by the table that the tests of
//! the browser's face read too (`pkg-template/test/shapes.test.mjs`).

use framebatch::Error;
use framebatch::graph::chain::{Axes, Chain, Heads, Home, Norm, OPEN, Op, Reduced, Reduction};
use framebatch::graph::shape::Shape;
use framebatch::graph::{BinaryFn, NodeId, UnaryFn};
use framebatch::tensor::DType;
use serde_json::{Map, Value};

type Row = Map<String, Value>;

fn table() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/shapes.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<i32> {
    let list = value.as_array().unwrap().iter();
    list.map(|number| number.as_i64().unwrap() as i32).collect()
}

fn shape(value: &Value) -> Result<Shape, Error> {
    let dims = numbers(value).into_iter();
    Shape::new(&dims.map(i32::cast_unsigned).collect::<Vec<u32>>())
}

/// What the row's operation gives, recorded by the methods of a chain.
fn record(row: &Row) -> Result<Vec<u32>, Error> {
    if row["op"] == "tensor" {
        return Ok(shape(&row["dims"])?.dims().to_vec());
    }
    let mut chain = Chain::default();
    let mut of = Vec::new();
    for (place, dims) in row["of"].as_array().unwrap().iter().enumerate() {
        let is_index = row.get("indexes").and_then(Value::as_u64) == Some(place as u64);
        let dtype = if is_index { DType::U32 } else { DType::F32 };
        of.push(chain.input(shape(dims)?, dtype, Home::Call)?);
    }
    let id = apply(&mut chain, row, &of)?;
    Ok(chain.node(id).shape.dims().to_vec())
}

fn apply(chain: &mut Chain, row: &Row, of: &[NodeId]) -> Result<NodeId, Error> {
    let op = row["op"].as_str().unwrap();
    let axes = row.get("axes").map(numbers).unwrap_or_default();
    let first = |usual: i32| axes.first().copied().unwrap_or(usual);
    let is = |name: &str| row.get(name) == Some(&Value::Bool(true));
    if let Some(function) = BinaryFn::OF_TENSORS.iter().find(|known| known.name() == op) {
        return chain.binary(*function, of[0], of[1]);
    }
    for reduction in Reduction::ALL {
        if reduce(reduction).name() == op {
            let over = Axes::of(&axes);
            let over = if is("keep") { over.kept() } else { over };
            return chain.reduce(reduction, of[0], over);
        }
    }
    for norm in Norm::ALL {
        if (Op::Norm { norm, axis: 0 }).name() == op {
            let epsilon = match norm {
                Norm::Softmax => None,
                _ => Some(chain.constant()?),
            };
            return chain.norm(norm, of[0], first(-1), epsilon);
        }
    }
    match op {
        "exp" => chain.unary(UnaryFn::Exp, of[0]),
        "clamp" => chain.clamp(of[0], of[1], of[2]),
        "where" => chain.select(of[0], of[1], of[2]),
        "dot" => chain.dot(of[0], of[1]),
        "matmul" => chain.matmul(of[0], of[1]),
        "attention" => {
            let heads = Heads {
                count: row["heads"].as_u64().unwrap() as u32,
                is_causal: is("causal"),
                window: row
                    .get("window")
                    .and_then(Value::as_u64)
                    .map(|window| window as u32),
            };
            let scale = chain.constant()?;
            chain.attention(heads, [of[0], of[1], of[2]], scale)
        }
        "transpose" => chain.transpose(of[0], &axes),
        "slice" => chain.slice(of[0], &ranges(&row["ranges"])),
        "reshape" => chain.reshape(of[0], shape(&row["dims"])?),
        "gather" => chain.gather(of[0], of[1], first(0)),
        "concat" => chain.concat(of, first(0)),
        _ => panic!("there is no operation {op}"),
    }
}

/// Starts, ends and steps; what is left out is open.
fn ranges(value: &Value) -> Vec<(i32, i32, i32)> {
    let range = |range: &Value| {
        let at = |place: usize| range.get(place).and_then(Value::as_i64);
        let step = at(2).map_or(1, |step| step as i32);
        let start = if step < 0 { i32::MAX } else { 0 };
        let place = |place: usize, open: i32| at(place).map_or(open, |number| number as i32);
        (place(0, start), place(1, OPEN), step)
    };
    value.as_array().unwrap().iter().map(range).collect()
}

#[test]
fn operations_give_and_refuse_what_the_table_says() {
    for row in table() {
        let about = Value::Object(row.clone()).to_string();
        match (record(&row), row.get("refused")) {
            (Ok(dims), None) => assert_eq!(Value::from(dims), row["gives"], "{about}"),
            (Err(error), Some(words)) => {
                let said = error.to_string();
                assert!(said.contains(words.as_str().unwrap()), "{about}: {said}");
            }
            (Ok(dims), Some(_)) => panic!("{about} gave {dims:?}"),
            (Err(error), None) => panic!("{about} was refused: {error}"),
        }
    }
}

/// An operation that is new needs rows here, or the faces may differ in what they say of it.
#[test]
fn every_operation_has_rows() {
    let rows = table();
    let has = |op: &str, verdict: &str| {
        let of_op = |row: &&Row| row["op"] == op && row.contains_key(verdict);
        rows.iter().any(|row| of_op(&row))
    };
    let reductions = Reduction::ALL.map(|reduction| reduce(reduction).name().to_owned());
    let norms = Norm::ALL.map(|norm| Op::Norm { norm, axis: 0 }.name().to_owned());
    for op in [&reductions[..], &norms].concat() {
        assert!(has(&op, "gives"), "{op}");
    }
    for op in [
        "tensor",
        "exp",
        "add",
        "clamp",
        "where",
        "dot",
        "matmul",
        "attention",
        "sum",
        "softmax",
        "transpose",
        "slice",
        "reshape",
        "gather",
        "concat",
    ] {
        assert!(has(op, "gives") && has(op, "refused"), "{op}");
    }
}

fn reduce(reduction: Reduction) -> Op {
    Op::Reduce {
        reduction,
        over: Reduced {
            axes: 0,
            keep: false,
        },
    }
}
