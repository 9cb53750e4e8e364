// Package sources is the list of the kinds of source that Daybook has.
package sources

import (
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/http"
	"github.com/daybook-data/daybook/sources/mysql"
	"github.com/daybook-data/daybook/sources/nginx"
)

// All returns a description of each kind. A new source is one package and one line
// here.
func All() []pipeline.SourceSpec {
	return []pipeline.SourceSpec{
		mysql.Spec(),
		nginx.Spec(),
		http.Spec(),
	}
}
