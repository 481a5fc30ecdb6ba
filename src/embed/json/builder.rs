//! Makes values of what a parser reads.

use super::parser::Event;
use super::value::Value;

/// Objects and lists that are open, and the value that is whole.
#[derive(Debug, Default)]
pub struct Builder {
    /// Each with the name of the field that it is, where it is one.
    open: Vec<(Option<String>, Value)>,
    /// The name of the next field.
    name: Option<String>,
    whole: Option<Value>,
}

impl Builder {
    /// Takes the next event of a value. Never refuses: whether events make sense is the parser's
    /// matter.
    ///
    /// # Errors
    ///
    /// None; it has the type of a parser's listener.
    pub fn hear(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::Object => self.open(Value::Object(Vec::new())),
            Event::List => self.open(Value::List(Vec::new())),
            Event::Name(name) => self.name = Some(name.into()),
            Event::Text(text) => self.add(Value::Text(text.into())),
            Event::Number(number) => self.add(Value::Number(number)),
            Event::Flag(flag) => self.add(Value::Flag(flag)),
            Event::Null => self.add(Value::Null),
            Event::End => {
                if let Some((name, value)) = self.open.pop() {
                    self.name = name;
                    self.add(value);
                }
            }
        }
        Ok(())
    }

    /// The value, once it is whole. The builder is then as it was at first.
    pub fn take(&mut self) -> Option<Value> {
        self.whole.take()
    }

    fn open(&mut self, value: Value) {
        self.open.push((self.name.take(), value));
    }

    fn add(&mut self, value: Value) {
        let name = self.name.take();
        match self.open.last_mut() {
            None => self.whole = Some(value),
            Some((_, Value::List(items))) => items.push(value),
            Some((_, Value::Object(fields))) => fields.push((name.unwrap_or_default(), value)),
            Some(_) => {}
        }
    }
}
