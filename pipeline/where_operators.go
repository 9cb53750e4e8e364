package pipeline

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"
)

// numberFunction is the function that makes a number of a text: number("1.50").
const numberFunction = "number"

// operatorPrefix begins the names of the functions that take the place of operators;
// no user can write such a name.
const operatorPrefix = "operator "

// whereOptions make expr compare and calculate with our numbers: each operator that
// may meet one is replaced by a function.
func whereOptions() []expr.Option {
	options := []expr.Option{
		expr.Env(map[string]any{}),
		expr.AllowUndefinedVariables(),
		expr.AsAny(),
		expr.Patch(operatorPatch{}),
		expr.Function(numberFunction, makeNumber, new(func(any) any)),
	}
	truth := map[string]func(a, b any) (bool, error){
		"==": equalValues,
		"!=": func(a, b any) (bool, error) { same, err := equalValues(a, b); return !same, err },
		"<":  func(a, b any) (bool, error) { c, err := compareValues("<", a, b); return c < 0, err },
		"<=": func(a, b any) (bool, error) { c, err := compareValues("<=", a, b); return c <= 0, err },
		">":  func(a, b any) (bool, error) { c, err := compareValues(">", a, b); return c > 0, err },
		">=": func(a, b any) (bool, error) { c, err := compareValues(">=", a, b); return c >= 0, err },
		"in": inCollection,
	}
	for operator, f := range truth {
		call := func(args ...any) (any, error) { return f(args[0], args[1]) }
		options = append(options, expr.Function(operatorPrefix+operator, call, new(func(any, any) bool)))
	}
	for _, operator := range []string{"+", "-", "*"} {
		call := func(args ...any) (any, error) { return arithmetic(operator, args[0], args[1]) }
		options = append(options, expr.Function(operatorPrefix+operator, call, new(func(any, any) any)))
	}
	return options
}

// operatorPatch replaces operators by the functions of whereOptions.
type operatorPatch struct{}

// Visit implements ast.Visitor.
func (operatorPatch) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok {
		return
	}
	switch n.Operator {
	case "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*":
		ast.Patch(node, &ast.CallNode{
			Callee:    &ast.IdentifierNode{Value: operatorPrefix + n.Operator},
			Arguments: []ast.Node{n.Left, n.Right},
		})
	}
}

// makeNumber is the function number.
func makeNumber(args ...any) (any, error) {
	switch v := args[0].(type) {
	case string:
		if !json.Valid([]byte(v)) {
			return nil, fmt.Errorf("%.40q is not a number", v)
		}
		return numberOf(v)
	case int, float64, json.Number:
		return v, nil
	}
	return nil, fmt.Errorf("%v is not a number", args[0])
}

// equalValues compares what may be of any type; different types are not equal.
func equalValues(a, b any) (bool, error) {
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y, nil
	case []any:
		if y, ok := b.([]any); ok {
			return equalLists(x, y)
		}
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return equalMaps(x, y)
		}
	}
	if isNumber(a) && isNumber(b) {
		c, err := compareNumbers(a, b)
		return c == 0, err
	}
	if isNumber(a) != isNumber(b) {
		return false, nil
	}
	return runtime.Equal(a, b), nil
}

func equalLists(x, y []any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if same, err := equalValues(x[i], y[i]); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func equalMaps(x, y map[string]any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for k := range x {
		other, ok := y[k]
		if !ok {
			return false, nil
		}
		if same, err := equalValues(x[k], other); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// compareValues orders two numbers or two texts (or dates and durations, as expr does).
func compareValues(operator string, a, b any) (int, error) {
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b)
	}
	x, isText := a.(string)
	if y, ok := b.(string); ok && isText {
		switch {
		case x < y:
			return -1, nil
		case x > y:
			return 1, nil
		}
		return 0, nil
	}
	if a == nil || b == nil || isNumber(a) || isNumber(b) || isText || reflect.TypeOf(a) != reflect.TypeOf(b) {
		return 0, fmt.Errorf("can't tell whether %s %s %s: compare a number with a number and a text with a text, and ask != nil first where a field may be missing", describe(a), operator, describe(b))
	}
	switch {
	case runtime.Less(a, b):
		return -1, nil
	case runtime.More(a, b):
		return 1, nil
	}
	return 0, nil
}

// describe names a value in an error, short.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return fmt.Sprintf("%.40q", v)
	}
	text := fmt.Sprint(v)
	return text[:min(len(text), 40)]
}

// inCollection reports whether a list holds a value or a map a key.
func inCollection(needle, collection any) (bool, error) {
	switch c := collection.(type) {
	case nil:
		return false, nil
	case []any:
		for _, v := range c {
			if same, err := equalValues(needle, v); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case []int: // a range: 1..10
		if len(c) == 0 || !isNumber(needle) {
			return false, nil
		}
		for _, v := range c {
			if n, err := compareNumbers(needle, v); n == 0 || err != nil {
				return n == 0, err
			}
		}
		return false, nil
	case map[string]any:
		key, ok := needle.(string)
		_, found := c[key]
		return ok && found, nil
	case string:
		return false, fmt.Errorf("%s in a text: write TEXT contains %s", describe(needle), describe(needle))
	}
	return runtime.In(needle, collection), nil
}

// arithmetic calculates with numbers, and leaves other types to expr.
func arithmetic(operator string, a, b any) (any, error) {
	if isNumber(a) && isNumber(b) {
		return calculate(operator, a, b)
	}
	if a == nil || b == nil {
		return nil, fmt.Errorf("%s %s %s: a field is missing", describe(a), operator, describe(b))
	}
	switch operator {
	case "+":
		return runtime.Add(a, b), nil
	case "-":
		return runtime.Subtract(a, b), nil
	}
	return runtime.Multiply(a, b), nil
}
