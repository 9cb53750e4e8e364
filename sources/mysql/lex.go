package mysql

import "strings"

// dialect is what changes how the text of a statement is read.
type dialect struct {
	ansiQuotes  bool // sql_mode ANSI_QUOTES: "x" is a name
	noBackslash bool // sql_mode NO_BACKSLASH_ESCAPES
	version     int  // of the server, such as 90704; comments /*!N ... */ above it are skipped
	mariaDB     bool // /*M! ... */ counts
}

type tokenKind byte

const (
	tokenWord   tokenKind = iota // an unquoted name, keyword or number
	tokenName                    // a quoted name, without its quotes
	tokenString                  // a string, unescaped
	tokenSymbol                  // one character
)

type token struct {
	kind tokenKind
	text string
	at   int // offset of its first byte in the statement
}

// is reports whether the token is the given keyword (in upper case) or symbol.
func (t token) is(word string) bool {
	return (t.kind == tokenWord && strings.EqualFold(t.text, word)) || (t.kind == tokenSymbol && t.text == word)
}

// lex splits a statement into tokens. ok is false where a quote or comment is not
// closed; what came before it is returned.
func lex(sql string, d dialect) (tokens []token, ok bool) {
	l := lexer{sql: sql, d: d}
	for l.next() {
	}
	return l.tokens, !l.broken
}

type lexer struct {
	sql     string
	d       dialect
	pos     int
	tokens  []token
	broken  bool
	running int // open executable comments, whose ends are then skipped
}

func (l *lexer) emit(kind tokenKind, text string, at int) {
	if kind == tokenName || kind == tokenWord {
		text = storedName(text)
	}
	l.tokens = append(l.tokens, token{kind, text, at})
}

// storedName is a name as the server keeps it: in utf8mb3, which has no characters
// beyond the basic plane.
func storedName(name string) string {
	return strings.Map(func(c rune) rune {
		if c > 0xFFFF {
			return '?'
		}
		return c
	}, name)
}

// next reads one token or one piece of white space; it returns false at the end.
func (l *lexer) next() bool {
	if l.pos >= len(l.sql) || l.broken {
		return false
	}
	c, at := l.sql[l.pos], l.pos
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v' || c == 0:
		l.pos++
	case c == '#', strings.HasPrefix(l.sql[at:], "--") && (at+2 == len(l.sql) || l.sql[at+2] <= ' '):
		l.line()
	case strings.HasPrefix(l.sql[at:], "/*"):
		l.comment()
	case l.running > 0 && strings.HasPrefix(l.sql[at:], "*/"):
		l.running--
		l.pos += 2
	case c == '`', c == '"' && l.d.ansiQuotes:
		l.emit(tokenName, l.quoted(c, false), at)
	case c == '\'', c == '"':
		l.emit(tokenString, l.quoted(c, !l.d.noBackslash), at)
	case isWordByte(c):
		for l.pos < len(l.sql) && isWordByte(l.sql[l.pos]) {
			l.pos++
		}
		l.emit(tokenWord, l.sql[at:l.pos], at)
	default:
		l.pos++
		l.emit(tokenSymbol, l.sql[at:l.pos], at)
	}
	return true
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

func (l *lexer) line() {
	if i := strings.IndexByte(l.sql[l.pos:], '\n'); i >= 0 {
		l.pos += i + 1
		return
	}
	l.pos = len(l.sql)
}

// comment skips a comment, or enters one that the server executes.
func (l *lexer) comment() {
	rest := l.sql[l.pos:]
	body, runs := strings.CutPrefix(rest, "/*!")
	if !runs && l.d.mariaDB {
		body, runs = strings.CutPrefix(rest, "/*M!")
	}
	if runs {
		digits := 0
		version := 0
		for digits < len(body) && digits < 6 && body[digits] >= '0' && body[digits] <= '9' {
			version = version*10 + int(body[digits]-'0')
			digits++
		}
		if version <= l.d.version {
			l.running++
			l.pos = len(l.sql) - len(body) + digits
			return
		}
	}
	if i := strings.Index(rest[2:], "*/"); i >= 0 {
		l.pos += 2 + i + 2
		return
	}
	l.broken = true
}

// quoted reads to the closing quote; a doubled quote stands for one.
func (l *lexer) quoted(quote byte, escapes bool) string {
	var b strings.Builder
	for l.pos++; l.pos < len(l.sql); l.pos++ {
		c := l.sql[l.pos]
		switch {
		case c == quote:
			if l.pos+1 >= len(l.sql) || l.sql[l.pos+1] != quote {
				l.pos++
				return b.String()
			}
			l.pos++
			b.WriteByte(quote)
		case c == '\\' && escapes && l.pos+1 < len(l.sql):
			l.pos++
			b.WriteByte(unescape(l.sql[l.pos]))
		default:
			b.WriteByte(c)
		}
	}
	l.broken = true
	return b.String()
}

func unescape(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'Z':
		return 26
	}
	return c
}

// cursor walks over tokens.
type cursor struct {
	tokens []token
	i      int
}

func (c *cursor) end() bool { return c.i >= len(c.tokens) }

// peek returns the token n places on; an empty symbol beyond the end.
func (c *cursor) peek(n int) token {
	if c.i+n >= len(c.tokens) {
		return token{kind: tokenSymbol}
	}
	return c.tokens[c.i+n]
}

// accept goes past the given keywords or symbols if all of them come next.
func (c *cursor) accept(words ...string) bool {
	for n, w := range words {
		if !c.peek(n).is(w) {
			return false
		}
	}
	c.i += len(words)
	return true
}

// acceptAny goes past one of the given keywords.
func (c *cursor) acceptAny(words ...string) bool {
	for _, w := range words {
		if c.accept(w) {
			return true
		}
	}
	return false
}

// name reads a name, quoted or not.
func (c *cursor) name() (string, bool) {
	t := c.peek(0)
	if t.kind != tokenWord && t.kind != tokenName {
		return "", false
	}
	c.i++
	return t.text, true
}

// parens goes past a balanced ( ... ) and returns what stands inside.
func (c *cursor) parens() ([]token, bool) {
	if !c.peek(0).is("(") {
		return nil, false
	}
	start, depth := c.i+1, 0
	for ; !c.end(); c.i++ {
		switch {
		case c.tokens[c.i].is("("):
			depth++
		case c.tokens[c.i].is(")"):
			if depth--; depth == 0 {
				c.i++
				return c.tokens[start : c.i-1], true
			}
		}
	}
	return nil, false
}

// splitCommas cuts tokens at the commas outside parentheses.
func splitCommas(tokens []token) [][]token {
	var parts [][]token
	depth, start := 0, 0
	for i, t := range tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case depth == 0 && t.is(","):
			parts = append(parts, tokens[start:i])
			start = i + 1
		}
	}
	return append(parts, tokens[start:])
}
