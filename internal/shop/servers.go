package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver that services.MySQL.DSN is for
	"github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/internal/services"
)

// Options say which servers a shop has.
type Options struct {
	// MariaDB takes that in place of MySQL.
	MariaDB bool
	// NeedSearch makes a machine without Java and Maven an error; otherwise the shop
	// then has no Elasticsearch.
	NeedSearch bool
	// Seed fixes the random choices of the traffic.
	Seed uint64
}

// Shop is the running servers and the traffic on them.
type Shop struct {
	MySQL  *services.MySQL
	Redis  *services.Redis
	Nginx  *services.Nginx
	Search *services.Elasticsearch // nil where the machine can't have one
	// NoSearch says why Search is nil.
	NoSearch error
	// Collect is the address where the pipeline's http source listens.
	Collect string

	Database *Database
	Site     *Site
	App      *App

	cache *redis.Client
}

// Open starts the servers. Close ends them.
func Open(ctx context.Context, o Options) (s *Shop, err error) {
	s = &Shop{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.start(ctx, o); err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", s.MySQL.DSN("", "app"))
	if err != nil {
		return nil, err
	}
	if s.Collect, err = freeAddress(); err != nil {
		return nil, err
	}
	s.Database = &Database{db: db, rnd: rand.New(rand.NewPCG(o.Seed, 1))}
	s.Site = &Site{url: s.Nginx.URL(), rnd: rand.New(rand.NewPCG(o.Seed, 2))}
	s.App = newApp("http://"+s.Collect+"/collect", o.Seed)
	s.cache = redis.NewClient(&redis.Options{Addr: s.Redis.Addr})
	return s, nil
}

func (s *Shop) start(ctx context.Context, o Options) (err error) {
	database := services.StartMySQL
	if o.MariaDB {
		database = services.StartMariaDB
	}
	if s.MySQL, err = database(ctx, services.Options{}); err != nil {
		return err
	}
	if s.Redis, err = services.StartRedis(ctx, services.Options{}); err != nil {
		return err
	}
	if s.Nginx, err = services.StartNginx(ctx, services.NginxOptions{}); err != nil {
		return err
	}
	s.Search, err = services.StartElasticsearch(ctx, services.Options{})
	var missing *services.Unavailable
	if errors.As(err, &missing) && !o.NeedSearch {
		s.Search, s.NoSearch = nil, missing
		return nil
	}
	return err
}

// Close ends the servers, in reverse. It may be called on a Shop that is half open.
func (s *Shop) Close() error {
	var errs []error
	if s.cache != nil {
		errs = append(errs, s.cache.Close())
	}
	if s.Database != nil {
		errs = append(errs, s.Database.db.Close())
	}
	if s.Search != nil {
		errs = append(errs, s.Search.Close())
	}
	if s.Nginx != nil {
		errs = append(errs, s.Nginx.Close())
	}
	if s.Redis != nil {
		errs = append(errs, s.Redis.Close())
	}
	if s.MySQL != nil {
		errs = append(errs, s.MySQL.Close())
	}
	return errors.Join(errs...)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Until tries check until it returns nil or patience is over; the last error is the
// answer then.
func Until(ctx context.Context, patience time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", patience, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
