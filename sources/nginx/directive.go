package nginx

import (
	"errors"
	"fmt"
	"strings"
)

// combined is the format that nginx has built in.
const combined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`

// Escape says how nginx wrote the values of variables.
type escape string

const (
	escapeDefault escape = "default" // "\xHH" for quotes, backslashes, control characters and bytes above 126
	escapeJSON    escape = "json"    // as in JSON texts
	escapeNone    escape = "none"    // as they are
)

// readFormat takes the name combined, a format's text, or a whole log_format
// directive as it stands in nginx.conf, which then also says the escape.
func readFormat(text string, e escape) (string, escape, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "combined" {
		return combined, e, nil
	}
	rest, ok := strings.CutPrefix(trimmed, "log_format")
	if !ok || rest == strings.TrimLeft(rest, " \t\r\n") {
		return text, e, nil
	}
	words, err := directiveWords(rest)
	if err != nil {
		return "", "", err
	}
	if len(words) < 2 {
		return "", "", errors.New("a log_format directive has a name and a format")
	}
	words = words[1:]
	if value, ok := strings.CutPrefix(words[0], "escape="); ok {
		e = escape(value)
		if e != escapeDefault && e != escapeJSON && e != escapeNone {
			return "", "", fmt.Errorf("escape=%s: want default, json or none", value)
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return "", "", errors.New("the log_format directive has no format")
	}
	return strings.Join(words, ""), e, nil
}

// directiveWords splits the arguments of a directive as nginx does: words in single
// or double quotes, or bare, up to the semicolon.
func directiveWords(s string) ([]string, error) {
	var words []string
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		switch {
		case s == "", s == ";":
			return words, nil
		case s[0] == ';':
			return nil, fmt.Errorf("text after the semicolon of log_format: %q", strings.TrimSpace(s[1:]))
		case s[0] == '#':
			_, s, _ = strings.Cut(s, "\n")
			continue
		}
		word, rest, err := directiveWord(s)
		if err != nil {
			return nil, err
		}
		words, s = append(words, word), rest
	}
}

// directiveWord reads the word that s begins with.
func directiveWord(s string) (word, rest string, err error) {
	quote := byte(0)
	i := 0
	if s[0] == '\'' || s[0] == '"' {
		quote, i = s[0], 1
	}
	var b strings.Builder
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteString(unescaped(s[i]))
		case quote != 0 && c == quote:
			return b.String(), s[i+1:], nil
		case quote == 0 && strings.IndexByte(" \t\r\n;", c) >= 0:
			return b.String(), s[i:], nil
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", "", fmt.Errorf("the quote %c of log_format is not closed", quote)
	}
	return b.String(), "", nil
}

// unescaped is what a backslash and c mean in nginx.conf; most pairs stand for
// themselves.
func unescaped(c byte) string {
	switch c {
	case '"', '\'', '\\':
		return string(c)
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case 'n':
		return "\n"
	}
	return "\\" + string(c)
}
