import GateBytes
import Testing

@Suite("Base64: one alphabet, exact padding")
struct Base64Tests {
    @Test("every length round-trips in both alphabets")
    func roundTrips() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
            #expect(Base64.decode(Base64.encodeURL(bytes)) == bytes)
        }
    }

    @Test("padding may be whole or absent", arguments: ["Zg==", "Zg"])
    func paddingIsOptional(text: String) {
        #expect(Base64.decode(text) == [UInt8(ascii: "f")])
    }

    @Test(
        "text with two readings is refused",
        arguments: [
            "Z", "Zg=", "Zg===", "=", "==", "Zh==", "Zh", "Zm9=", "Zm8==", "Zm8 ", " Zm8", "Zm\n8=",
            "+_8=", "-/8=", "Zg==Zg==", "Z=g=", "Zm9v====", "Zm9v=",
        ])
    func ambiguousTextIsRefused(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test("both alphabets give the same bytes")
    func alphabetsAgree() {
        #expect(Base64.decode("+/8=") == Base64.decode("-_8"))
    }
}
