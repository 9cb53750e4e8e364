package configs

import (
	"fmt"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// Problem is one thing wrong with a file, and where.
type Problem struct {
	File         string
	Line, Column int
	Path         string // as in sinks[0].redis.addr
	Message      string
}

// Error returns file:line:column: path: message.
func (p Problem) Error() string {
	s := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		s += p.Path + ": "
	}
	return s + p.Message
}

// Problems is all that is wrong with a file, in the order of its lines.
type Problems []Problem

// Error returns a line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sorted() Problems {
	sort.SliceStable(ps, func(i, j int) bool {
		return ps[i].Line < ps[j].Line || ps[i].Line == ps[j].Line && ps[i].Column < ps[j].Column
	})
	return ps
}

// At lets a Checker report problems at the place of a key.
type At struct {
	d    *decoder
	node *yaml.Node
	path string
}

// Errorf reports a problem with the field of the given key, or with the section
// where the key is empty or not in the file.
func (a *At) Errorf(key, format string, args ...any) {
	n := a.node
	if v := lookup(a.node, key); v != nil {
		n = v
	}
	a.d.problem(n, join(a.path, key), fmt.Sprintf(format, args...))
}

// Has reports whether the key stands in the section, as opposed to its default.
func (a *At) Has(key string) bool { return lookup(a.node, key) != nil }

// Item returns the place of the i-th element of the list at the given key.
func (a *At) Item(key string, i int) *At {
	list := lookup(a.node, key)
	if list == nil || i >= len(list.Content) {
		return a
	}
	return &At{d: a.d, node: resolve(list.Content[i]), path: fmt.Sprintf("%s[%d]", join(a.path, key), i)}
}

// Suggestion returns `; did you mean "x"?` for the nearest known name, if near.
func Suggestion(got string, known []string) string {
	best, bestDistance := "", 1+max(1, len(got)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(got), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the number of single-character edits and swaps of neighbours that
// turn a into b.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
