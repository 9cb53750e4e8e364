package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// In `where`, a number is an int where it is whole and fits, a float64 where that
// holds all its digits, and else a json.Number. So most comparisons are those of the
// machine, and the rest are exact all the same.

// maxExponent bounds the exponents that are taken for numbers: 1e1000000000 is nine
// characters and a gigabyte of digits.
const maxExponent = 5000

// numberOf returns the number that a JSON text stands for.
func numberOf(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return int(i), nil
	}
	digits, exponent := text, ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		digits, exponent = text[:at], text[at+1:]
	}
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > maxExponent || e < -maxExponent {
			return nil, fmt.Errorf("number %.40s: the exponent is out of range", text)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("%.40q is not a number", text)
	}
	// A decimal of up to 15 significant digits survives the way through float64.
	if err == nil && significant(digits) <= 15 && (f == 0 || math.Abs(f) > 1e-300) {
		return f, nil
	}
	return json.Number(text), nil
}

// significant counts the digits of a decimal without leading zeros.
func significant(digits string) int {
	n := 0
	for i := range len(digits) {
		if c := digits[i]; c >= '1' && c <= '9' || c == '0' && n > 0 {
			n++
		}
	}
	return n
}

// isNumber reports whether v is one of the forms of a number.
func isNumber(v any) bool {
	switch v.(type) {
	case int, float64, json.Number:
		return true
	}
	return false
}

// compareNumbers compares two numbers by their value.
func compareNumbers(a, b any) (int, error) {
	switch x := a.(type) {
	case int:
		switch y := b.(type) {
		case int:
			return order(x, y), nil
		case float64:
			if x < 1<<53 && x > -1<<53 {
				return order(float64(x), y), nil
			}
		}
	case float64:
		switch y := b.(type) {
		case float64:
			return order(x, y), nil
		case int:
			if y < 1<<53 && y > -1<<53 {
				return order(x, float64(y)), nil
			}
		}
	}
	x, err := rational(a)
	if err != nil {
		return 0, err
	}
	y, err := rational(b)
	if err != nil {
		return 0, err
	}
	return x.Cmp(y), nil
}

func order[T int | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// rational returns a number's exact decimal value. That of a float64 is the shortest
// decimal that gives it, which is what was written.
func rational(v any) (*big.Rat, error) {
	var text string
	switch v := v.(type) {
	case int:
		return new(big.Rat).SetInt64(int64(v)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v compares with no number", v)
		}
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		text = string(v)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%.40q is not a number", text)
	}
	return r, nil
}

// calculate adds, subtracts or multiplies. Whole numbers stay exact, beyond 64 bits too.
func calculate(operator string, a, b any) (any, error) {
	x, xWhole := a.(int)
	y, yWhole := b.(int)
	if xWhole && yWhole {
		if sum, ok := calculateInts(operator, x, y); ok {
			return sum, nil
		}
	} else if _, ok := a.(json.Number); !ok {
		if _, ok := b.(json.Number); !ok {
			return calculateFloats(operator, toFloat(a), toFloat(b)), nil
		}
	}
	p, err := rational(a)
	if err != nil {
		return nil, err
	}
	q, err := rational(b)
	if err != nil {
		return nil, err
	}
	r := new(big.Rat)
	switch operator {
	case "+":
		r.Add(p, q)
	case "-":
		r.Sub(p, q)
	case "*":
		r.Mul(p, q)
	}
	places, _ := r.FloatPrec() // exact: sums and products of decimals are decimals
	return numberOf(r.FloatString(places))
}

func calculateInts(operator string, x, y int) (result int, ok bool) {
	switch operator {
	case "+":
		result = x + y
		return result, (result > x) == (y > 0)
	case "-":
		result = x - y
		return result, (result < x) == (y > 0)
	}
	result = x * y
	return result, x == 0 || (result/x == y && (x != -1 || y != math.MinInt))
}

func calculateFloats(operator string, x, y float64) float64 {
	switch operator {
	case "+":
		return x + y
	case "-":
		return x - y
	}
	return x * y
}

func toFloat(v any) float64 {
	if i, ok := v.(int); ok {
		return float64(i)
	}
	return v.(float64)
}
