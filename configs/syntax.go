package configs

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntaxProblem finds the place of an error of the YAML parser, which has no type,
// and says in plain words what most often is behind it.
func syntaxProblem(name string, data []byte, err error) Problem {
	p := Problem{File: name, Line: 1, Column: 1, Message: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatchIndex(p.Message); m != nil {
		p.Line, _ = strconv.Atoi(p.Message[m[2]:m[3]])
		p.Message = p.Message[:m[0]] + p.Message[m[1]:]
	}
	switch rest, expected := strings.CutPrefix(p.Message, "did not find expected "); {
	case expected:
		// The parser counts these from zero, and means where the block begins.
		p.Line++
		p.Message = "in the block that begins here something is not closed or not indented as the rest: expected " + rest
	case p.Message == "mapping values are not allowed in this context":
		p.Message = "a colon where none can be: put a value that holds `: ` in quotes, and indent keys of a section alike"
	case p.Message == "found unexpected end of stream":
		p.Message = "a quote that begins here is not closed"
	}
	if m := unknownAnchor.FindStringSubmatch(p.Message); m != nil {
		p.Line, p.Column = placeOf(data, "*"+m[1])
	}
	if line, column, what := badCharacter(data); what != "" {
		p.Line, p.Column, p.Message = line, column, what
	}
	return p
}

var unknownAnchor = regexp.MustCompile(`^unknown anchor '([^']+)' referenced$`)

// placeOf returns the line and column at which text first stands in data.
func placeOf(data []byte, text string) (line, column int) {
	before, _, found := bytes.Cut(data, []byte(text))
	if !found {
		return 1, 1
	}
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// badCharacter finds what YAML does not allow and the parser names without a place,
// or without saying that it is about a character that can't be seen.
func badCharacter(data []byte) (line, column int, what string) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for i, text := range bytes.Split(data, []byte("\n")) {
		indent := len(text) - len(bytes.TrimLeft(text, " \t"))
		if tab := bytes.IndexByte(text[:indent], '\t'); tab >= 0 && indent < len(bytes.TrimSuffix(text, []byte("\r"))) {
			return i + 1, tab + 1, "a tab indents this line: YAML wants spaces"
		}
		for at := 0; at < len(text); {
			r, size := utf8.DecodeRune(text[at:])
			switch {
			case r == utf8.RuneError && size == 1:
				return i + 1, at + 1, fmt.Sprintf("the byte 0x%02X is not UTF-8", text[at])
			case r < 0x20 && r != '\t' && r != '\r' || r == 0x7f:
				return i + 1, at + 1, fmt.Sprintf("the control character 0x%02X can't stand here", r)
			}
			at += size
		}
	}
	return 0, 0, ""
}
