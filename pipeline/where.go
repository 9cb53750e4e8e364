package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

// Where decides which records a sink takes: a condition in expr's language over the
// row's fields and table, db, op, stream, key and source. These names go before fields
// of the same name; row.NAME is always the field. A field that the row lacks is nil.
//
// Numbers compare by value with all their digits; one beyond 64 bits is written
// number("18446744073709551616"). What can't be compared (nil < 5, text < number) is an
// error, and the record a dead letter: a condition is never silently false.
//
// A Where keeps the stack it computes on: use one from one goroutine at a time.
type Where struct {
	text     string
	program  *vm.Program
	possible *vm.Program
	reads    whereReads
	machine  vm.VM
	env      map[string]any
}

// CompileWhere compiles a condition. The error names the column.
func CompileWhere(text string) (*Where, error) {
	w := &Where{text: text, env: map[string]any{}}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, whereError(err)
	}
	w.reads = readsOf(tree.Node)
	if w.reads.unknown != "" {
		return nil, fmt.Errorf("there is no function %s", w.reads.unknown)
	}
	if w.program, err = expr.Compile(text, whereOptions()...); err != nil {
		return nil, whereError(err)
	}
	if t := w.program.Node().Type(); t.Kind() != reflect.Bool && t.Kind() != reflect.Interface {
		return nil, fmt.Errorf("the condition gives a %s, want true or false", t)
	}
	if w.possible, err = expr.Compile(possible(tree.Node, true), whereOptions()...); err != nil {
		return nil, fmt.Errorf("deriving what can be said without a row: %w", whereError(err))
	}
	return w, nil
}

// whereError puts an error of expr on one line: "column 8: unexpected token".
func whereError(err error) error {
	var e *file.Error
	if !errors.As(err, &e) {
		return err
	}
	hint := ""
	if strings.Contains(e.Message, "invalid integer literal") || strings.Contains(e.Message, "value out of range") {
		hint = `; write a number beyond 64 bits as number("...")`
	}
	if strings.Contains(e.Message, `Operator("=")`) {
		hint = "; write == to compare"
	}
	return fmt.Errorf("column %d: %s%s", e.Column+1, strings.ToLower(e.Message[:1])+e.Message[1:], hint)
}

// String returns the condition as it was written.
func (w *Where) String() string { return w.text }

// Apply judges a delivery and turns it into what it means to a sink that holds only
// the records that the condition is true for: an update that leaves the set becomes a
// delete, one that enters it a create. keep is false for what never was in the set. An
// error is a reason for a dead letter; with keep the delivery goes on beside it: what a
// row became can't be judged, so it is not in the set, and what it was has to leave.
//
// Where the before image may be less than the whole row (a tombstone, a delete without
// image, a change from a foreign topic) or there is none (a truncation), the delivery
// goes on unless what is known of it rules it out: a delete too many does no harm.
func (w *Where) Apply(d *Delivery) (keep bool, err error) {
	switch d.Op {
	case OpUpdate:
		return w.applyUpdate(d)
	case OpDelete:
		if d.partial || d.Before.Absent() {
			return w.run(w.possible, d, &Row{})
		}
		inside, err := w.run(w.program, d, &d.Before)
		return inside || err != nil, nil
	case OpTruncate:
		return w.run(w.possible, d, &Row{})
	}
	if d.After.Absent() && w.reads.anyRow {
		return false, errors.New("where: the value is not a JSON object, but the condition asks for its fields")
	}
	return w.run(w.program, d, &d.After)
}

func (w *Where) applyUpdate(d *Delivery) (keep bool, err error) {
	after, err := w.run(w.program, d, &d.After)
	if err != nil {
		return w.leaveUnjudged(d), err
	}
	if d.partial || d.Before.Absent() {
		if after {
			return true, nil
		}
		if keep, err = w.run(w.possible, d, &Row{}); !keep || err != nil {
			return false, err
		}
		d.leave()
		return true, nil
	}
	before, err := w.run(w.program, d, &d.Before)
	switch {
	case err != nil:
		// What the row was does not stand in the way of what it is: where it is in the set
		// now it arrives, where it is not it leaves, which does no harm if it never was.
		if !after {
			d.leave()
		}
		return true, nil
	case before && !after:
		d.leave()
	case !before && after:
		d.Op, d.Before = OpCreate, Row{}
	}
	return before || after, nil
}

// leaveUnjudged makes an update whose outcome can't be judged a delete of what was in the
// set, and reports whether anything may have been.
func (w *Where) leaveUnjudged(d *Delivery) bool {
	program, row := w.program, &d.Before
	if d.partial || d.Before.Absent() {
		program, row = w.possible, &Row{}
	}
	was, err := w.run(program, d, row)
	if was && err == nil {
		d.leave()
		return true
	}
	return false
}

// leave turns an update into the delete of its before image.
func (d *Delivery) leave() {
	if d.Before.Absent() {
		d.Before = d.After
	}
	d.Op, d.After = OpDelete, Row{}
}

// run evaluates a program over one image.
func (w *Where) run(p *vm.Program, d *Delivery, row *Row) (bool, error) {
	clear(w.env)
	if err := w.loadRow(row); err != nil {
		return false, fmt.Errorf("where: %w", err)
	}
	w.loadMeta(d)
	result, err := w.machine.Run(p, w.env)
	if err != nil {
		return false, fmt.Errorf("where: %w", whereError(err))
	}
	truth, ok := result.(bool)
	if !ok {
		return false, fmt.Errorf("where: the condition gives %s, want true or false", describe(result))
	}
	return truth, nil
}

// loadRow puts the fields that the expression names into the environment, and
// decodes no others.
func (w *Where) loadRow(row *Row) error {
	var whole map[string]any
	if w.reads.hasRow {
		whole = map[string]any{}
		w.env["row"] = whole
	}
	if !w.reads.anyRow || row.Absent() {
		return nil
	}
	var bad error
	err := members(row.JSON(), func(name, raw []byte) {
		if bad != nil || !w.reads.all && !w.reads.fields[string(name)] {
			return
		}
		v, err := whereValue(raw)
		if err != nil {
			bad = fmt.Errorf("field %q: %w", name, err)
			return
		}
		w.env[string(name)] = v
		if whole != nil {
			whole[string(name)] = v
		}
	})
	return errors.Join(err, bad)
}

func (w *Where) loadMeta(d *Delivery) {
	w.env["db"], w.env["table"] = d.Names()
	w.env["op"] = d.Op.String()
	w.env["stream"] = d.Stream
	w.env["source"] = d.Source
	if w.reads.hasKey {
		w.env["key"] = nil
		if key, err := d.KeyText(); err == nil {
			w.env["key"] = key
		}
	}
}

// whereValue decodes a JSON value into one of `where`.
func whereValue(raw []byte) (any, error) {
	switch {
	case len(raw) == 0:
		return nil, errCutOff
	case raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0:
		return string(raw[1 : len(raw)-1]), nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return numberOf(string(raw))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return withNumbers(v)
}

// withNumbers puts the numbers in a decoded value into the forms of `where`.
func withNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return numberOf(string(v))
	case []any:
		for i := range v {
			if v[i], err = withNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = withNumbers(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
