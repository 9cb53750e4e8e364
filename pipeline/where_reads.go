package pipeline

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// metaNames are what `where` knows of a record beside its row.
var metaNames = []string{"table", "db", "op", "stream", "key", "source"}

// whereReads is what a condition asks of a record.
type whereReads struct {
	fields map[string]bool // by name, or as row.NAME
	all    bool            // the row as a whole, or a name found only at run time
	hasRow bool            // `row`
	hasKey bool
	anyRow bool // any of the first three

	unknown string // a function that does not exist
}

// readsOf finds the names that an expression uses.
func readsOf(node ast.Node) whereReads {
	r := whereReads{fields: map[string]bool{}}
	ast.Walk(&node, &r)
	r.anyRow = len(r.fields) > 0 || r.all || r.hasRow
	return r
}

// Visit implements ast.Visitor.
func (r *whereReads) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		switch {
		case n.Value == "row":
			r.hasRow = true
		case n.Value == "$env":
			r.all, r.hasRow, r.hasKey = true, true, true
		case n.Value == "key":
			r.hasKey = true
		case !slices.Contains(metaNames, n.Value):
			r.fields[n.Value] = true
		}
	case *ast.MemberNode:
		if row, ok := n.Node.(*ast.IdentifierNode); !ok || row.Value != "row" {
			return
		}
		if name, ok := n.Property.(*ast.StringNode); ok {
			r.fields[name.Value] = true
		} else {
			r.all = true
		}
	case *ast.CallNode:
		// The callee was visited as an identifier and stands among the fields: one field
		// too many costs little, one too few would falsify.
		if f, ok := n.Callee.(*ast.IdentifierNode); ok && f.Value != numberFunction {
			r.unknown = f.Value
		}
	}
}

// possible returns the text of an expression that is true wherever node could be true
// for some row, or with sign false, false wherever node could be false: parts that ask
// for the row are taken as whatever makes that so.
func possible(node ast.Node, sign bool) string {
	switch n := node.(type) {
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			return "not (" + possible(n.Node, !sign) + ")"
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&":
			return "(" + possible(n.Left, sign) + ") and (" + possible(n.Right, sign) + ")"
		case "or", "||":
			return "(" + possible(n.Left, sign) + ") or (" + possible(n.Right, sign) + ")"
		}
	}
	if reads := readsOf(node); reads.anyRow || hasLocals(node) {
		if sign {
			return "true"
		}
		return "false"
	}
	return node.String()
}

// hasLocals reports whether an expression declares or closes over variables, whose
// parts can't be told apart.
func hasLocals(node ast.Node) bool {
	var f localsFinder
	ast.Walk(&node, &f)
	return f.found
}

type localsFinder struct{ found bool }

// Visit implements ast.Visitor.
func (f *localsFinder) Visit(node *ast.Node) {
	switch (*node).(type) {
	case *ast.VariableDeclaratorNode, *ast.PredicateNode, *ast.SequenceNode:
		f.found = true
	}
}
