//! A JSON document against a JSON schema: the keywords that schemars writes. Another keyword is an error.

use serde_json::Value;

/// Every fault, with its place.
pub(crate) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, schema, document, "$", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        assert_eq!(*schema, Value::Bool(true), "{place}: a schema is an object or true");
        return;
    };
    let fault = |what: String| format!("{place}: {what}");
    let is_valid = |schema: &Value| {
        let mut inner = Vec::new();
        check(root, schema, value, place, &mut inner);
        inner.is_empty()
    };
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "default" | "format" => {}
            "$ref" => {
                let pointer = wanted.as_str().and_then(|text| text.strip_prefix('#'));
                let named = pointer.and_then(|pointer| root.pointer(pointer)).expect("a definition");
                check(root, named, value, place, faults);
            }
            "type" if !one_or_more(wanted).any(|name| has_type(value, name)) => {
                faults.push(fault(format!("{value} is not {wanted}")));
            }
            "enum" if !wanted.as_array().unwrap().contains(value) => {
                faults.push(fault(format!("{value} is not in {wanted}")));
            }
            "const" if wanted != value => faults.push(fault(format!("{value} is not {wanted}"))),
            "anyOf" | "oneOf" => {
                let fitting = wanted.as_array().unwrap().iter().filter(|each| is_valid(each)).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    faults.push(fault(format!("{value} fits {fitting} of {keyword}")));
                }
            }
            "minimum" if value.is_number() && value.as_f64() < wanted.as_f64() => {
                faults.push(fault(format!("{value} is below {wanted}")));
            }
            "maximum" if value.as_f64() > wanted.as_f64() => {
                faults.push(fault(format!("{value} is above {wanted}")));
            }
            "minItems" if value.is_array() && length(value) < wanted.as_u64() => {
                faults.push(fault(format!("fewer than {wanted} items")));
            }
            "maxItems" if length(value) > wanted.as_u64() => {
                faults.push(fault(format!("more than {wanted} items")));
            }
            "required" if value.is_object() => {
                let missing = one_or_more(wanted).filter(|name| value.get(name).is_none());
                faults.extend(missing.map(|name| fault(format!("{name} is missing"))));
            }
            "type" | "enum" | "const" | "minimum" | "maximum" | "minItems" | "maxItems" | "required" => {}
            // Below, with a place of their own.
            "properties" | "additionalProperties" | "items" | "prefixItems" => {}
            other => panic!("{place}: the keyword {other} is not checked"),
        }
    }
    let is_part = ["$ref", "anyOf", "oneOf"].iter().any(|keyword| schema.get(keyword).is_some());
    let is_closed = schema.get("properties").is_some() && !is_part;
    for (name, inner) in value.as_object().into_iter().flatten() {
        let property = schema.get("properties").and_then(|known| known.get(name));
        match (property, schema.get("additionalProperties")) {
            (Some(property), _) => check(root, property, inner, &format!("{place}.{name}"), faults),
            (None, Some(Value::Bool(false))) => faults.push(format!("{place}: {name} is unknown")),
            (None, Some(others)) => check(root, others, inner, &format!("{place}.{name}"), faults),
            // schemars leaves objects open; here a field without a schema is a fault.
            (None, None) if is_closed => {
                faults.push(format!("{place}: {name} is not in the schema"));
            }
            (None, None) => {}
        }
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        let by_place = schema.get("prefixItems").and_then(|schemas| schemas.get(at));
        if let Some(schema) = by_place.or(schema.get("items")) {
            check(root, schema, item, &format!("{place}[{at}]"), faults);
        }
    }
}

fn one_or_more(value: &Value) -> impl Iterator<Item = &str> {
    let many = value.as_array().into_iter().flatten();
    many.chain(Some(value).filter(|value| value.is_string())).filter_map(Value::as_str)
}

/// Only an array has a length that can be wrong.
fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type of JSON"),
    }
}
