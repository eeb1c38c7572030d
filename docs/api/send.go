package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type answer struct {
	Success                           bool
	Error, Reason, Message, RequestID string
	ExpiresIn                         int
}

var temporary = map[string]bool{"rate_limited": true, "unavailable": true, "idempotency_in_progress": true}

// The request has the API key, so redirects are not followed.
var client = http.Client{
	Timeout:       15 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// call returns the answer of otpost, also for errors. Up to three attempts have one key: one message, one comparison.
func call(path string, fields map[string]string) (result answer) {
	fields["brandId"] = os.Getenv("OTPOST_BRAND_ID")
	body, _ := json.Marshal(fields)
	key := make([]byte, 16)
	rand.Read(key)
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequest("POST", os.Getenv("OTPOST_URL")+path, bytes.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("OTPOST_API_KEY"))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", fmt.Sprintf("%x", key))
		pause := attempt
		response, err := client.Do(request)
		if err == nil {
			result = answer{}
			err = json.NewDecoder(response.Body).Decode(&result)
			response.Body.Close()
			if seconds, none := strconv.Atoi(response.Header.Get("Retry-After")); none == nil {
				pause = seconds
			}
		}
		// A person waits: return the error if the pause would be long.
		if err == nil && (attempt == 3 || pause > 5 || !temporary[result.Error]) {
			return result
		}
		if attempt == 3 {
			log.Fatal(err) // No answer: a time-out, or the connection broke.
		}
		time.Sleep(time.Duration(pause) * time.Second)
	}
}

func main() {
	phone := "+1 202 555 0143"
	if len(os.Args) > 1 {
		phone = os.Args[1]
	}
	sent := call("/otp/send", map[string]string{"phone": phone})
	if !sent.Success {
		log.Fatalf("not sent: %+v", sent)
	}
	fmt.Println("expires in", sent.ExpiresIn)

	var code string
	fmt.Scanln(&code)
	verified := call("/otp/verify", map[string]string{"phone": phone, "otp": code})
	switch {
	case verified.Success:
		fmt.Println("verified")
	case verified.Error == "mismatch":
		fmt.Println("wrong code")
	default:
		fmt.Printf("not verified: %+v\n", verified)
	}
}
