package mysql

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// charTable is a character set of one byte a character, as the server maps it.
type charTable [256]string

// decoder turns stored text into UTF-8.
type decoder struct {
	kind  decoderKind
	table *charTable
}

type decoderKind byte

const (
	decodeUTF8 decoderKind = iota
	decodeTable
	decodeUTF16
	decodeUTF16LE
	decodeUTF32
)

// wideCharsets are the sets of more than one byte that need no table.
var wideCharsets = map[string]decoderKind{
	"utf8mb4": decodeUTF8, "utf8mb3": decodeUTF8,
	"ucs2": decodeUTF16, "utf16": decodeUTF16, "utf16le": decodeUTF16LE, "utf32": decodeUTF32,
}

// decodable reports whether text in the character set can be captured.
func (s *server) decodable(charset string) bool {
	_, wide := wideCharsets[charset]
	return wide || s.maxLen[charset] == 1
}

// decoder returns the decoder of a character set. Sets of one byte are asked from
// the server, so that each byte means what it means there (latin1 is cp1252 with
// five bytes of MySQL's own, for one).
func (s *server) decoder(ctx context.Context, charset string) (decoder, error) {
	if kind, ok := wideCharsets[charset]; ok {
		return decoder{kind: kind}, nil
	}
	if t := s.tables[charset]; t != nil {
		return decoder{decodeTable, t}, nil
	}
	if s.maxLen[charset] != 1 {
		return decoder{}, fmt.Errorf("character set %q is not supported", charset)
	}
	exprs := make([]string, 256)
	dest := make([]any, 256)
	var chars [256][]byte
	for i := range exprs {
		exprs[i] = fmt.Sprintf("CAST(CONVERT(CONVERT(X'%02X' USING %s) USING utf8mb4) AS BINARY)", i, charset)
		dest[i] = &chars[i]
	}
	if err := s.db.QueryRowContext(ctx, "SELECT "+strings.Join(exprs, ", ")).Scan(dest...); err != nil {
		return decoder{}, fmt.Errorf("asking for character set %s: %w", charset, err)
	}
	t := &charTable{}
	for i := range t {
		if t[i] = string(chars[i]); chars[i] == nil {
			t[i] = "?" // no character of the set: what SELECT shows for it
		}
	}
	s.tables[charset] = t
	return decoder{decodeTable, t}, nil
}

// appendJSON appends text as a JSON string.
func (d decoder) appendJSON(dst, text []byte) []byte {
	switch d.kind {
	case decodeUTF8:
		return appendJSONString(dst, text)
	case decodeTable:
		dst = append(dst, '"')
		for _, c := range text {
			if plainByte[c] {
				dst = append(dst, d.table[c]...) // ASCII in every set that MySQL has, but asked anyway
				continue
			}
			dst = appendEscaped(dst, d.table[c])
		}
		return append(dst, '"')
	}
	return appendJSONString(dst, d.wide(text))
}

// string returns text as UTF-8.
func (d decoder) string(text []byte) string {
	switch d.kind {
	case decodeUTF8:
		return string(text)
	case decodeTable:
		var b []byte
		for _, c := range text {
			b = append(b, d.table[c]...)
		}
		return string(b)
	}
	return string(d.wide(text))
}

// wide decodes sets of two and four bytes. What can't be a character becomes
// U+FFFD, which SELECT shows as a question mark.
func (d decoder) wide(text []byte) []byte {
	var out []byte
	switch d.kind {
	case decodeUTF16, decodeUTF16LE:
		units := make([]uint16, len(text)/2)
		for i := range units {
			hi, lo := text[2*i], text[2*i+1]
			if d.kind == decodeUTF16LE {
				hi, lo = lo, hi
			}
			units[i] = uint16(hi)<<8 | uint16(lo)
		}
		for _, r := range utf16.Decode(units) {
			out = utf8.AppendRune(out, r)
		}
	case decodeUTF32:
		for i := 0; i+4 <= len(text); i += 4 {
			out = utf8.AppendRune(out, rune(text[i])<<24|rune(text[i+1])<<16|rune(text[i+2])<<8|rune(text[i+3]))
		}
	}
	return out
}

// plainByte marks the bytes that stand in a JSON string as they are.
var plainByte = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendJSONString appends UTF-8 text as a JSON string. Bytes that are no UTF-8
// become U+FFFD: JSON can't hold them, and the server lets none into such a column.
func appendJSONString(dst, text []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if plainByte[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, text[start:i]...)
			dst = appendControl(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, text[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		i += size
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

// appendEscaped appends one character that may need an escape.
func appendEscaped(dst []byte, char string) []byte {
	if len(char) == 1 && !plainByte[char[0]] {
		return appendControl(dst, char[0])
	}
	return append(dst, char...)
}

func appendControl(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case 0x7F:
		return append(dst, c)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// translate makes the text of a statement UTF-8 where its client spoke a character
// set of one byte a character that begins with ASCII (latin1, cp1251, ...). Of others
// the bytes of a quote may be the second half of a character: they stay as they are.
func (s *server) translate(ctx context.Context, st *statement) error {
	charset := s.collations[st.collation]
	if st.utf8 || s.maxLen[charset] != 1 {
		return nil
	}
	d, err := s.decoder(ctx, charset)
	if err != nil {
		return err
	}
	for c := range 0x80 {
		if d.table[c] != string(rune(c)) {
			return nil
		}
	}
	var b strings.Builder
	for i := range len(st.sql) {
		b.WriteString(d.table[st.sql[i]])
	}
	st.sql, st.utf8 = b.String(), true
	return nil
}
