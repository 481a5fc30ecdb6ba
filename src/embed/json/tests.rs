use proptest::prelude::*;

use super::*;

/// The value of a file that comes in slices of so many bytes.
fn in_slices(bytes: &[u8], size: usize) -> Result<Value, Problem> {
    let (mut parser, mut builder) = (Parser::default(), Builder::default());
    for slice in bytes.chunks(size) {
        parser.feed(slice, &mut |event| builder.hear(event))?;
    }
    parser.finish(&mut |event| builder.hear(event))?;
    Ok(builder.take().expect("a whole value"))
}

fn of_serde(value: &serde_json::Value) -> Value {
    use serde_json::Value as Other;
    match value {
        Other::Null => Value::Null,
        Other::Bool(flag) => Value::Flag(*flag),
        Other::Number(number) => Value::Number(number.as_f64().expect("a float")),
        Other::String(text) => Value::Text(text.clone()),
        Other::Array(items) => Value::List(items.iter().map(of_serde).collect()),
        Other::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.clone(), of_serde(value)));
            Value::Object(fields.collect())
        }
    }
}

/// The same with the fields of objects in their order by name, each once: serde's map has them so.
fn sorted(value: Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.into_iter().map(sorted).collect()),
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, sorted(value)));
            let last_of_each: std::collections::BTreeMap<String, Value> = fields.collect();
            Value::Object(last_of_each.into_iter().collect())
        }
        other => other,
    }
}

#[test]
fn values_are_those_of_serde_in_slices_of_any_size() {
    let files = [
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "-12.5e-3",
        "1e300",
        "123456789012345678901234567890",
        "1E+2",
        "\"\"",
        r#""a \"quoted\" \\ \/ \b\f\n\r\t text""#,
        r#""é \u00e9 \uD83D\uDE00 😀 \u0000""#,
        "[]",
        "{}",
        "[1, [2, [3, []]], {\"a\": [null]}]",
        r#"{"a": 1, "b": {"c": "d", "e": []}, "a": 2, "": "no name"}"#,
        "\t{\r\n \"a\" :\n[ 1 ,2 ] }\n",
        r#"{"ключ": "значение", "鍵": "値"}"#,
    ];
    for file in files {
        let expected: serde_json::Value = serde_json::from_str(file).unwrap();
        let expected = sorted(of_serde(&expected));
        for size in 1..=file.len() {
            let value = in_slices(file.as_bytes(), size).unwrap();
            assert_eq!(sorted(value), expected, "{file} in slices of {size}");
        }
    }
}

#[test]
fn what_is_no_json_is_refused_with_the_place() {
    let deep = "[".repeat(128);
    let long = "1".repeat(1100);
    let files: [(&[u8], &str, usize); 34] = [
        (b"", "it ends too early", 0),
        (b" ", "it ends too early", 1),
        (b"tru", "expected a value", 3),
        (b"nul]", "expected a value", 3),
        (b"True", "expected a value", 0),
        (b"01", "expected a value", 2),
        (b"-", "expected a value", 1),
        (b"1.", "expected a value", 2),
        (b".5", "expected a value", 0),
        (b"1e", "expected a value", 2),
        (b"+1", "expected a value", 0),
        (b"1e999", "a number is too large", 5),
        (b"-1e999 ", "a number is too large", 6),
        (b"NaN", "expected a value", 0),
        (b"1 2", "there is more behind its value", 2),
        (b"[1,]", "expected a value", 3),
        (b"[1 2]", "expected ',' or the end of a list or object", 3),
        (b"[1}", "expected ',' or the end of a list or object", 2),
        (b"[", "it ends too early", 1),
        (b"{\"a\":1,}", "expected the name of a field", 7),
        (b"{\"a\"}", "expected ':'", 4),
        (b"{\"a\":}", "expected a value", 5),
        (b"{1:2}", "expected the name of a field", 1),
        (b"\"a", "it ends too early", 2),
        (b"\"\n\"", "a text has a control character", 1),
        (b"\"\\x\"", "a text has an unknown escape", 2),
        (b"\"\\u12g4\"", "an escape needs four hexadecimal digits", 5),
        (b"\"\\ud800\"", "a text has half of a surrogate pair", 7),
        (b"\"\\ud800a\"", "a text has half of a surrogate pair", 7),
        (b"\"\\ud800\\n\"", "a text has half of a surrogate pair", 8),
        (
            b"\"\\ud800\\ud800\"",
            "a text has half of a surrogate pair",
            12,
        ),
        (b"\"\\udc00\"", "a text has half of a surrogate pair", 6),
        (deep.as_bytes(), "it is nested too deeply", 127),
        (long.as_bytes(), "a number is too long", 1024),
    ];
    for (file, what, at) in files {
        let text = String::from_utf8_lossy(file).into_owned();
        let is_known = serde_json::from_slice::<serde_json::Value>(file).is_ok();
        assert!(!is_known || file == long.as_bytes(), "{text}");
        for size in [1, 2, 3, 1 << 20] {
            let problem = in_slices(file, size).unwrap_err();
            assert_eq!(problem, Problem { what, at }, "{text} in slices of {size}");
        }
    }
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xc3",
        b"\xef\xbb\xbf1",
        b"\"\xed\xa0\x80\"",
    ] {
        assert!(in_slices(bytes, 1).is_err(), "{bytes:?}");
    }
}

#[test]
fn a_listener_that_refuses_ends_the_reading() {
    let mut parser = Parser::default();
    let mut heard = 0;
    let refused = parser.feed(b"[1, 2, 3]", &mut |event| {
        heard += 1;
        match event {
            Event::Number(2.0) => Err("two is refused"),
            _ => Ok(()),
        }
    });
    let (what, at) = ("two is refused", 5);
    assert_eq!((refused, heard), (Err(Problem { what, at }), 3));
}

#[test]
fn whole_numbers_are_those_that_floats_hold() {
    let cases = [
        ("0", Some(0)),
        ("64.0", Some(64)),
        ("9007199254740992", Some(1 << 53)),
        ("9007199254740994", None),
        ("-1", None),
        ("0.5", None),
        ("\"1\"", None),
    ];
    for (text, whole) in cases {
        assert_eq!(parse(text.as_bytes()).unwrap().as_whole(), whole, "{text}");
    }
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-1e9..1e9f64).prop_map(Into::into),
        any::<u32>().prop_map(Into::into),
        ".*".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::vec((".*", inner), 0..8).prop_map(|fields| {
                let fields: serde_json::Map<String, serde_json::Value> =
                    fields.into_iter().collect();
                fields.into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn random_values_are_read_as_they_were(value in any_value(), size in 1..40usize, pretty: bool) {
        let text = match pretty {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        };
        // Serde itself reads the last bit of some numbers wrong.
        let ours = in_slices(text.as_bytes(), size).unwrap();
        prop_assert_eq!(sorted(ours), of_serde(&value));
    }

    #[test]
    fn bytes_are_json_where_serde_says_so(bytes in "[\\[\\]{}:,\"\\\\ue01.\\-+ntrul \\n]{0,24}", size in 1..8usize) {
        let theirs = serde_json::from_str::<serde_json::Value>(&bytes);
        let ours = in_slices(bytes.as_bytes(), size);
        prop_assert_eq!(theirs.is_ok(), ours.is_ok(), "{:?} {:?}", theirs, ours);
    }
}
