package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../configs/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// readYAML returns a file as a JSON reader would see it.
func readYAML(t *testing.T, path string) any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheSchemaTakesTheReference(t *testing.T) {
	t.Parallel()
	if err := validate(readSchema(t), readYAML(t, "../../configs/reference.yaml"), ""); err != nil {
		t.Error(err)
	}
}

// What an editor can see it must see: else the file is first found wrong when it runs.
func TestTheSchemaRefusesWhatTheDecoderRefuses(t *testing.T) {
	t.Parallel()
	schema := readSchema(t)
	for _, name := range []string{
		"not-a-section", "unknown-key", "unknown-key-nested", "missing-field", "missing-in-connector", "no-kind", "two-kinds",
		"type-text", "type-bool", "type-number", "type-number-fraction", "type-list", "type-list-item", "type-section", "type-list-of-sections",
		"duration", "duration-unit", "duration-negative", "size", "size-unit", "range", "positive", "enum", "pattern", "name", "not-empty",
		"secret-in-the-file", "secret-unknown", "secret-both", "secret-name-not-text",
	} {
		if err := validate(schema, readYAML(t, "../../configs/testdata/"+name+".bad.yaml"), ""); err == nil {
			t.Errorf("the schema takes %s", name)
		}
	}
}

// validate knows the words of JSON Schema that the generator writes, and no other.
func validate(schema map[string]any, v any, path string) error {
	known := words()
	for word, arg := range schema {
		check, ok := known[word]
		if !ok {
			return fmt.Errorf("%s: the schema uses %q, which this test does not know", path, word)
		}
		if check == nil {
			continue
		}
		if err := check(schema, arg, v, path); err != nil {
			return err
		}
	}
	return nil
}

// rule checks a value against the argument of one word of a schema.
type rule func(schema map[string]any, arg, v any, path string) error

func refuse(path string, arg, v any) error { return fmt.Errorf("%s: %v is against %v", path, v, arg) }

// words are the words and what they check; nil for those that only tell.
func words() map[string]rule {
	return map[string]rule{
		"$schema": nil, "title": nil, "description": nil, "default": nil,
		"type": func(_ map[string]any, arg, v any, path string) error {
			types, ok := arg.([]any)
			if !ok {
				types = []any{arg}
			}
			if !slices.Contains(types, any(typeOf(v))) && !(typeOf(v) == "integer" && slices.Contains(types, any("number"))) {
				return refuse(path, arg, v)
			}
			return nil
		},
		"properties": func(_ map[string]any, arg, v any, path string) error {
			for key, schema := range arg.(map[string]any) {
				if o, ok := v.(map[string]any); ok {
					if member, ok := o[key]; ok {
						if err := validate(schema.(map[string]any), member, path+"."+key); err != nil {
							return err
						}
					}
				}
			}
			return nil
		},
		"additionalProperties": func(schema map[string]any, arg, v any, path string) error {
			o, _ := v.(map[string]any)
			for key := range o {
				if _, known := schema["properties"].(map[string]any)[key]; !known && arg == false {
					return refuse(path, "additionalProperties", key)
				}
			}
			return nil
		},
		"required": func(_ map[string]any, arg, v any, path string) error {
			o, _ := v.(map[string]any)
			for _, key := range arg.([]any) {
				if _, ok := o[key.(string)]; !ok {
					return refuse(path, key, v)
				}
			}
			return nil
		},
		"oneOf": func(_ map[string]any, arg, v any, path string) error {
			valid := 0
			for _, schema := range arg.([]any) {
				if validate(schema.(map[string]any), v, path) == nil {
					valid++
				}
			}
			if valid != 1 {
				return refuse(path, "oneOf", v)
			}
			return nil
		},
		"allOf": func(_ map[string]any, arg, v any, path string) error {
			for _, schema := range arg.([]any) {
				if err := validate(schema.(map[string]any), v, path); err != nil {
					return err
				}
			}
			return nil
		},
		"items": func(_ map[string]any, arg, v any, path string) error {
			list, _ := v.([]any)
			for i, item := range list {
				if err := validate(arg.(map[string]any), item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
					return err
				}
			}
			return nil
		},
		"enum": func(_ map[string]any, arg, v any, path string) error {
			if !slices.Contains(arg.([]any), v) {
				return refuse(path, arg, v)
			}
			return nil
		},
		"pattern": func(_ map[string]any, arg, v any, path string) error {
			if s, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(s) {
				return refuse(path, arg, v)
			}
			return nil
		},
		"minLength": func(_ map[string]any, arg, v any, path string) error {
			if s, ok := v.(string); ok && float64(utf8.RuneCountInString(s)) < arg.(float64) {
				return refuse(path, arg, v)
			}
			return nil
		},
		"minItems": func(_ map[string]any, arg, v any, path string) error {
			if l, ok := v.([]any); ok && float64(len(l)) < arg.(float64) {
				return refuse(path, arg, v)
			}
			return nil
		},
		"minimum": func(_ map[string]any, arg, v any, path string) error {
			if n, ok := v.(float64); ok && n < arg.(float64) {
				return refuse(path, arg, v)
			}
			return nil
		},
		"maximum": func(_ map[string]any, arg, v any, path string) error {
			if n, ok := v.(float64); ok && n > arg.(float64) {
				return refuse(path, arg, v)
			}
			return nil
		},
	}
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
