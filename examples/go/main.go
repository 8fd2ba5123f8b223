// A shop's list of items as JSON. It listens on $PORT.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

type item struct {
	ID    int     `json:"id"`
	Name  string  `json:"name"`
	Price float64 `json:"price"`
}

func items() []item {
	all := make([]item, 0, 20)
	for id := 1; id <= 20; id++ {
		all = append(all, item{ID: id, Name: fmt.Sprintf("item %d", id), Price: float64(id) * 1.5})
	}
	return all
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	http.HandleFunc("/api/items", func(w http.ResponseWriter, r *http.Request) {
		found := items()[:0]
		for _, one := range items() {
			if strings.Contains(one.Name, r.URL.Query().Get("name")) {
				found = append(found, one)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(found); err != nil {
			log.Print(err)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
