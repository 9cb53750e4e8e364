package elasticsearch

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// appendOperation appends an operation to the body of a bulk request. The document is
// copied as it stands, except that line feeds between its values, which would end it for
// Elasticsearch, are left out. index is the name that Elasticsearch has for the place's.
//
// Guarantee 11.
func appendOperation(body []byte, o *operation, index string) []byte {
	if o.kind == put {
		body = append(body, `{"index":{"_index":`...)
	} else {
		body = append(body, `{"delete":{"_index":`...)
	}
	body = appendText(body, index)
	body = append(body, `,"_id":`...)
	body = appendText(body, o.id)
	if o.routing != "" {
		body = append(body, `,"routing":`...)
		body = appendText(body, o.routing)
	}
	body = append(body, `,"version":`...)
	body = strconv.AppendUint(body, o.Version, 10)
	body = append(body, `,"version_type":"external_gte"}}`...)
	body = append(body, '\n')
	if o.kind != put {
		return body
	}
	return append(appendDocument(body, o.After.JSON()), '\n')
}

func appendDocument(body, doc []byte) []byte {
	if bytes.IndexByte(doc, '\n') < 0 && bytes.IndexByte(doc, '\r') < 0 {
		return append(body, doc...)
	}
	start := len(body)
	b := bytes.NewBuffer(body)
	if err := json.Compact(b, doc); err == nil {
		return b.Bytes()
	}
	// No JSON: Elasticsearch is to say so, of this document only.
	body = append(body[:start], doc...)
	for i := start; i < len(body); i++ {
		if body[i] == '\n' || body[i] == '\r' {
			body[i] = ' '
		}
	}
	return body
}

// appendText appends s, which is UTF-8, as a JSON text.
func appendText(body []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			text, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string always has a JSON form
			}
			return append(body, text...)
		}
	}
	body = append(body, '"')
	body = append(body, s...)
	return append(body, '"')
}
