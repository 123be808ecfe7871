internal import AppAttestWire
internal import GateBytes

extension Console {
    /// Prints an answer as JSON; a body that is not text is given in base64.
    func printJSON(_ response: HTTPResponse) {
        var json = JSONWriter()
        json.beginObject()
        json.member("status", response.status)
        if let code = response.code { json.member("code", code) }
        json.beginArray("fields")
        for field in response.fields {
            json.beginObject()
            json.member("name", field.name)
            json.member("value", field.value)
            json.endObject()
        }
        json.endArray()
        if response.body.allSatisfy({ $0 < 0x80 }) {
            json.member("body", response.body)
        } else {
            json.member("bodyBase64", Base64.encode(response.body))
        }
        json.endObject()
        printJSON(json)
    }
}
