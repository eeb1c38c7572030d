package main

import (
	"bufio"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

type proofClaims struct {
	jwt.RegisteredClaims
	BrandID string `json:"brandId"`
	To      string `json:"to"`
	Review  bool   `json:"review"`
}

var client = http.Client{Timeout: 15 * time.Second}

// loadKeys returns the public keys by their ID.
func loadKeys() (map[string]ed25519.PublicKey, error) {
	response, err := client.Get(os.Getenv("OTPOST_URL") + "/.well-known/jwks.json")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	var set struct {
		Keys []struct{ Kid, Kty, Crv, X string }
	}
	if err := json.NewDecoder(response.Body).Decode(&set); err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, key := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(key.X)
		if err == nil && len(x) == ed25519.PublicKeySize && key.Kty == "OKP" && key.Crv == "Ed25519" {
			keys[key.Kid] = x
		}
	}
	return keys, nil
}

var (
	lock     sync.Mutex
	keys     map[string]ed25519.PublicKey
	loadedAt time.Time
	triedAt  time.Time
)

// keyOf loads the keys again every 5 minutes, and for an unknown one, at most once per 30 seconds.
func keyOf(kid string) (ed25519.PublicKey, error) {
	lock.Lock()
	defer lock.Unlock()
	if key, known := keys[kid]; known && time.Since(loadedAt) < 5*time.Minute {
		return key, nil
	}
	if time.Since(triedAt) >= 30*time.Second {
		triedAt = time.Now()
		loaded, err := loadKeys()
		if err != nil {
			return nil, fmt.Errorf("%w: %v", errUnreachable, err)
		}
		keys, loadedAt = loaded, triedAt
	}
	if time.Since(loadedAt) >= 5*time.Minute {
		return nil, errUnreachable
	}
	if key, known := keys[kid]; known {
		return key, nil
	}
	return nil, errors.New("unknown key")
}

// errUnreachable says nothing about the proof.
var errUnreachable = errors.New("the key set cannot be loaded")

// For clocks that differ.
const leeway = 30 * time.Second

// claimsOf returns the claims of a valid proof. With an error: refuse it.
func claimsOf(proof string) (*proofClaims, error) {
	claims := &proofClaims{}
	// Not by the parser, whose versions differ in leeway.
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithoutClaimsValidation())
	var keyErr error
	_, err := parser.ParseWithClaims(proof, claims, func(token *jwt.Token) (interface{}, error) {
		var key ed25519.PublicKey
		kid, _ := token.Header["kid"].(string)
		key, keyErr = keyOf(kid)
		return key, keyErr
	})
	if keyErr != nil {
		return nil, keyErr
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if claims.ExpiresAt == nil || !now.Before(claims.ExpiresAt.Add(leeway)) ||
		claims.IssuedAt == nil || claims.IssuedAt.After(now.Add(leeway)) ||
		claims.NotBefore != nil && claims.NotBefore.After(now.Add(leeway)) {
		return nil, errors.New("not valid at this time")
	}
	isOurs := claims.Issuer == os.Getenv("OTPOST_ISSUER") &&
		len(claims.Audience) == 1 && claims.Audience[0] == os.Getenv("OTPOST_APP_ID")
	if !isOurs || claims.ID == "" || claims.To == "" {
		return nil, errors.New("not a proof for this application")
	}
	if claims.Review {
		return nil, errors.New("the code of a review number was sent to nobody")
	}
	return claims, nil
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		// Of any length, unlike those of a Scanner.
		line, end := lines.ReadString('\n')
		if end != nil && line == "" {
			return
		}
		claims, err := claimsOf(strings.TrimSpace(line))
		switch {
		case err == nil:
			fmt.Println("proves", claims.To)
		case errors.Is(err, errUnreachable):
			fmt.Println("not checked:", err)
		default:
			fmt.Println("refused")
		}
	}
}
