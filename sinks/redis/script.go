package redis

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed apply.lua
var applySource string

//go:embed mark.lua
var markSource string

//go:embed claim.lua
var claimSource string

// scripts are the programs that run in the server. They are sent by their hash; what
// the server does not know it answers with NOSCRIPT.
type scripts struct {
	apply, mark, claim *redis.Script
}

func newScripts() scripts {
	return scripts{apply: redis.NewScript(applySource), mark: redis.NewScript(markSource), claim: redis.NewScript(claimSource)}
}
