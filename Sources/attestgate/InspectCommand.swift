internal import AppAttest
internal import AppAttestWire

/// `attestgate inspect`: an object field by field, without a judgement.
enum InspectCommand {
    static let specification = CommandSpecification(
        "inspect", summary: "print an attestation object, assertion, authenticator data or receipt",
        operands: [
            OperandSpecification(
                "FILE", help: "the object: raw bytes or base64 text; - is standard input")
        ],
        optional: [SharedOptions.json],
        notes: ["What the file is shows by its bytes. Nothing is judged: see attestgate verify."]
    ) { (arguments, console) throws(CommandError) in
        let object = try InputFile.object(arguments.operands[0], console: console)
        guard !object.isEmpty else { throw .notHeld("\(arguments.operands[0]): empty") }
        let kind = Inspection.kind(of: object)
        let fields = Inspection.fields(of: object)
        if arguments.has(SharedOptions.json) {
            var json = JSONWriter()
            json.beginObject()
            json.member("kind", kind.rawValue)
            json.member("byteCount", object.count)
            json.beginArray("fields")
            for field in fields {
                json.beginObject()
                json.member("name", field.name)
                json.member("value", field.value)
                json.endObject()
            }
            json.endArray()
            json.endObject()
            console.printJSON(json)
        } else {
            console.print(console.styled("\(kind.rawValue), \(object.count) bytes", .heading))
            console.printTable(fields.map { ($0.name.printable, $0.value.printable) })
        }
        return kind == .unknown ? .notHeld : .done
    }
}
