package main

import (
	"bufio"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
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

// loadKeys returns the public keys by their ID. Load them again after 5 minutes.
func loadKeys() (map[string]ed25519.PublicKey, error) {
	response, err := client.Get(os.Getenv("OTPOST_URL") + "/.well-known/jwks.json")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
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

// claimsOf returns the claims of a valid proof. With an error: refuse it.
func claimsOf(proof string, keys map[string]ed25519.PublicKey) (*proofClaims, error) {
	claims := &proofClaims{}
	keyOf := func(token *jwt.Token) (interface{}, error) {
		kid, _ := token.Header["kid"].(string)
		if key, known := keys[kid]; known {
			return key, nil
		}
		return nil, errors.New("unknown key")
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}))
	// It checks exp only if there is one.
	if _, err := parser.ParseWithClaims(proof, claims, keyOf); err != nil {
		return nil, err
	}
	isOurs := claims.Issuer == os.Getenv("OTPOST_ISSUER") &&
		len(claims.Audience) == 1 && claims.Audience[0] == os.Getenv("OTPOST_APP_ID")
	if !isOurs || claims.ExpiresAt == nil || claims.ID == "" || claims.To == "" {
		return nil, errors.New("not a proof for this application")
	}
	if claims.Review {
		return nil, errors.New("the code of a review number was sent to nobody")
	}
	return claims, nil
}

func main() {
	keys, err := loadKeys()
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if claims, err := claimsOf(lines.Text(), keys); err == nil {
			fmt.Println("proves", claims.To)
		} else {
			fmt.Println("refused")
		}
	}
}
