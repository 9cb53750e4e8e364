package kafka

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xdg-go/scram"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// The SASL mechanisms there are.
const (
	MechanismPlain       = "PLAIN"
	MechanismScramSHA256 = "SCRAM-SHA-256"
	MechanismScramSHA512 = "SCRAM-SHA-512"
	MechanismOAuthBearer = "OAUTHBEARER"
)

// Bounds of the iterations of a credential: Kafka's. Fewer are guessed too easily,
// more make every login costly.
const (
	minIterations = 4096
	maxIterations = 16384
)

// scramHash is one SCRAM mechanism; number is the protocol's.
type scramHash struct {
	name   string
	number int8
	hash   scram.HashGeneratorFcn
}

var scramHashes = []scramHash{
	{MechanismScramSHA256, 1, scram.SHA256},
	{MechanismScramSHA512, 2, scram.SHA512},
}

func findScram(match func(scramHash) bool) (scramHash, bool) {
	if i := slices.IndexFunc(scramHashes, match); i >= 0 {
		return scramHashes[i], true
	}
	return scramHash{}, false
}

// NewCredentials makes a user's credentials of a password, for every mechanism.
func NewCredentials(user, password string) ([]metadata.Credential, error) {
	var all []metadata.Credential
	for _, h := range scramHashes {
		salt := make([]byte, 32)
		_, _ = rand.Read(salt) // documented never to fail
		c, err := h.credential(user, password, scram.KeyFactors{Salt: string(salt), Iters: minIterations})
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (h scramHash) credential(user, password string, factors scram.KeyFactors) (metadata.Credential, error) {
	client, err := h.hash.NewClient(user, password, "")
	if err != nil {
		return metadata.Credential{}, fmt.Errorf("user %q: its name or password has characters that SASL forbids: %w", user, err)
	}
	stored, err := client.GetStoredCredentialsWithError(factors)
	if err != nil {
		return metadata.Credential{}, err
	}
	return metadata.Credential{
		Mechanism: h.name, Iterations: factors.Iters, Salt: []byte(factors.Salt),
		StoredKey: stored.StoredKey, ServerKey: stored.ServerKey,
	}, nil
}

// CheckPassword reports whether password is the one that a credential was made of.
func CheckPassword(user, password string, c metadata.Credential) bool {
	h, ok := findScram(func(h scramHash) bool { return h.name == c.Mechanism })
	if !ok {
		return false
	}
	got, err := h.credential(user, password, scram.KeyFactors{Salt: string(c.Salt), Iters: c.Iterations})
	return err == nil && subtle.ConstantTimeCompare(got.StoredKey, c.StoredKey) == 1
}

// decoy is the credential of a user that does not exist: nobody has its password,
// and from outside it looks like any other: its salt is the same at each login, on all nodes. Only while the secret that
// they share cannot be had, as the metadata has no leader, this node has one of its own.
func (s *Server) decoy(user string, h scramHash) metadata.Credential {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	secret, err := s.node.DecoySecret(ctx)
	if err != nil {
		secret = s.decoySecret
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(h.name + "\x00" + user))
	seed := mac.Sum(nil)
	size := h.hash().Size()
	key := make([]byte, size)
	_, _ = rand.Read(key)
	return metadata.Credential{Mechanism: h.name, Iterations: minIterations, Salt: seed, StoredKey: key, ServerKey: key}
}

// credential returns a user's credential, or a decoy.
func (s *Server) credential(user string, h scramHash) metadata.Credential {
	if c, ok := s.node.Meta().Credential(user, h.name); ok {
		return c
	}
	return s.decoy(user, h)
}

// describeUserSCRAMCredentials lists who may log in, and how.
func (s *Server) describeUserSCRAMCredentials(c *call, req *kmsg.DescribeUserSCRAMCredentialsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeUserSCRAMCredentialsResponse)
	if err := c.cluster(kmsg.ACLOperationDescribe); err != nil {
		resp.ErrorCode, resp.ErrorMessage = errorCode(err), errorText(err)
		return resp
	}
	users := map[string]*metadata.User{}
	asked := map[string]int{}
	var order []string
	for _, u := range s.node.Meta().Users() {
		users[u.Name] = u
		if len(req.Users) == 0 { // all
			order = append(order, u.Name)
		}
	}
	for _, u := range req.Users {
		if asked[u.Name]++; asked[u.Name] == 1 {
			order = append(order, u.Name)
		}
	}
	for _, name := range order {
		result := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		result.User = name
		var err error
		switch u := users[name]; {
		case asked[name] > 1:
			err = fmt.Errorf("%w: user %q is named twice", kerr.DuplicateResource, name)
		case u == nil:
			err = fmt.Errorf("%w: user %q has no credentials", kerr.ResourceNotFound, name)
		default:
			result.CredentialInfos = credentialInfos(u)
		}
		result.ErrorCode, result.ErrorMessage = errorCode(err), errorText(err)
		resp.Results = append(resp.Results, result)
	}
	return resp
}

func credentialInfos(u *metadata.User) []kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo {
	var infos []kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo
	for _, credential := range u.Credentials {
		if h, ok := findScram(func(h scramHash) bool { return h.name == credential.Mechanism }); ok {
			info := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
			info.Mechanism, info.Iterations = h.number, int32(credential.Iterations)
			infos = append(infos, info)
		}
	}
	return infos
}

// scramChange is what is asked for one mechanism of a user.
type scramChange struct {
	user      string
	mechanism int8
	upsert    *kmsg.AlterUserSCRAMCredentialsRequestUpsertion // nil deletes
}

// alterUserSCRAMCredentials makes, changes and deletes users. Per user all is done
// or, if something about it is wrong, nothing.
func (s *Server) alterUserSCRAMCredentials(c *call, req *kmsg.AlterUserSCRAMCredentialsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterUserSCRAMCredentialsResponse)
	changes := map[string][]scramChange{}
	var order []string
	add := func(change scramChange) {
		if changes[change.user] == nil {
			order = append(order, change.user)
		}
		changes[change.user] = append(changes[change.user], change)
	}
	for _, d := range req.Deletions {
		add(scramChange{user: d.Name, mechanism: d.Mechanism})
	}
	for i, u := range req.Upsertions {
		add(scramChange{user: u.Name, mechanism: u.Mechanism, upsert: &req.Upsertions[i]})
	}
	refused := c.cluster(kmsg.ACLOperationAlter)
	for _, user := range order {
		result := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
		result.User = user
		err := refused
		if err == nil {
			err = s.alterUser(c.ctx, user, changes[user])
		}
		result.ErrorCode, result.ErrorMessage = errorCode(err), errorText(err)
		resp.Results = append(resp.Results, result)
	}
	return resp
}

func (s *Server) alterUser(ctx context.Context, user string, changes []scramChange) error {
	if !validGroup(user) { // the same rule
		return fmt.Errorf("%w: a user needs a name", kerr.UnacceptableCredential)
	}
	seen := map[int8]bool{}
	for _, change := range changes {
		if seen[change.mechanism] {
			return fmt.Errorf("%w: a mechanism of user %q stands twice", kerr.DuplicateResource, user)
		}
		seen[change.mechanism] = true
		if err := s.checkScramChange(change); err != nil {
			return err
		}
	}
	for _, change := range changes {
		h, _ := findScram(func(h scramHash) bool { return h.number == change.mechanism })
		var err error
		if change.upsert == nil {
			err = s.node.DeleteCredential(ctx, user, h.name)
		} else {
			err = s.node.PutCredential(ctx, user, h.fromSalted(change.upsert))
		}
		if errors.Is(err, metadata.ErrUnknownUser) {
			return fmt.Errorf("%w: user %q", kerr.ResourceNotFound, user)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) checkScramChange(change scramChange) error {
	h, ok := findScram(func(h scramHash) bool { return h.number == change.mechanism })
	switch {
	case !ok:
		return fmt.Errorf("%w: mechanism %d", kerr.UnsupportedSaslMechanism, change.mechanism)
	case change.upsert == nil:
		if _, ok := s.node.Meta().Credential(change.user, h.name); !ok {
			return fmt.Errorf("%w: user %q has no credential of %s", kerr.ResourceNotFound, change.user, h.name)
		}
	case change.upsert.Iterations < minIterations || change.upsert.Iterations > maxIterations:
		return fmt.Errorf("%w: %d iterations, allowed are %d to %d", kerr.UnacceptableCredential, change.upsert.Iterations, minIterations, maxIterations)
	case len(change.upsert.Salt) == 0 || len(change.upsert.Salt) > 1024:
		return fmt.Errorf("%w: a salt of %d bytes", kerr.UnacceptableCredential, len(change.upsert.Salt))
	case len(change.upsert.SaltedPassword) != h.hash().Size():
		return fmt.Errorf("%w: a salted password of %d bytes", kerr.UnacceptableCredential, len(change.upsert.SaltedPassword))
	}
	return nil
}

// fromSalted derives the keys of a password that the client has salted itself (RFC
// 5802, section 3).
func (h scramHash) fromSalted(u *kmsg.AlterUserSCRAMCredentialsRequestUpsertion) metadata.Credential {
	sum := func(text string) []byte {
		mac := hmac.New(func() hash.Hash { return h.hash() }, u.SaltedPassword)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := h.hash()
	stored.Write(sum("Client Key"))
	return metadata.Credential{
		Mechanism: h.name, Iterations: int(u.Iterations), Salt: slices.Clone(u.Salt),
		StoredKey: stored.Sum(nil), ServerKey: sum("Server Key"),
	}
}
