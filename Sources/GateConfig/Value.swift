/// What kind of value an argument is; the word in capitals is how the directive table writes it.
enum ValueKind: String, Sendable, CaseIterable {
    case address = "ADDRESS"
    case appID = "APPID"
    case count = "COUNT"
    case dotted = "DOTTED"
    case duration = "DURATION"
    case fieldName = "FIELD"
    case file = "FILE"
    case filePath = "FILEPATH"
    case hostName = "HOST"
    case methods = "METHODS"
    case name = "NAME"
    case network = "NETWORK"
    case octal = "OCTAL"
    case pathPattern = "PATH"
    case pointer = "POINTER"
    case purpose = "PURPOSE"
    case rate = "RATE"
    case secret = "SECRET"
    case server = "SERVER"
    case share = "SHARE"
    case size = "SIZE"
    case text = "TEXT"
    case url = "URL"

    /// An example, for messages.
    var example: String {
        switch self {
        case .address: "127.0.0.1:8080, [::1]:8080, unix:/path or systemd:NAME"
        case .appID: "ABCDE12345.com.example.shop"
        case .count: "100"
        case .dotted: "1.2.3"
        case .duration: "250ms, 5s, 2m, 1h or 7d"
        case .fieldName: "X-Account-Id"
        case .file: "file:PATH or credential:NAME"
        case .filePath: "/var/lib/attestgate"
        case .hostName: "api.example.com"
        case .methods: "POST, POST,PUT or *"
        case .name: "letters, digits, - and _"
        case .network: "10.0.0.0/8 or ::1/128"
        case .octal: "0660"
        case .pathPattern: "/exact or /prefix/*"
        case .pointer: "json:/member"
        case .purpose: "a-z, 0-9, _ and -, at most 32"
        case .rate: "60/1m"
        case .secret: "credential:NAME, file:PATH or env:NAME"
        case .server: "10.0.2.10:8080, name:8080 or unix:/path"
        case .share: "25%"
        case .size: "64k, 1m or 2g"
        case .text: "text"
        case .url: "https://host/path"
        }
    }
}

/// Where a secret or a file stands; its content is read only where it is used.
enum Reference: Equatable, Sendable {
    case credential(String)
    case environment(String)
    case file(String)
}

/// An argument after its text was understood.
enum Value: Equatable, Sendable {
    case address(ListenAddress)
    case count(Int)
    case duration(Duration)
    case keyword(String)
    case methods([String])
    case network(Network)
    case path(String, isPrefix: Bool)
    /// The reference tokens of a JSON pointer.
    case pointer([String])
    case rate(Rate)
    case reference(Reference)
    case server(Upstream.Server.Endpoint)
    case share(Int)
    case size(Int)
    case text(String)
}

/// Why a text is no value of its kind: a message and what to write instead.
struct ValueError: Error, Equatable {
    let message: String
    var remedy = ""
    /// Whether the text may be a secret and must not be shown.
    var isSecret = false
}

extension ValueKind {
    /// The value of `text`; numbers outside `bounds` are refused.
    func parse(_ text: String, bounds: ClosedRange<Int>?, noun: String) throws(ValueError) -> Value
    {
        switch self {
        case .address: .address(try AddressText.listen(text))
        case .appID: .text(try NameText.appID(text))
        case .count: .count(try NumberText.count(text, bounds: bounds ?? Limits.count))
        case .dotted: .text(try NameText.dotted(text))
        case .duration: .duration(try NumberText.duration(text, bounds: bounds))
        case .fieldName: .text(try NameText.field(text))
        case .file: .reference(try NameText.reference(text, noun: noun, isSecret: false))
        case .filePath: .text(try NameText.filePath(text))
        case .hostName: .text(try NameText.host(text))
        case .methods: .methods(try MethodText.parse(text))
        case .name: .text(try NameText.name(text))
        case .network: .network(try AddressText.network(text))
        case .octal: .count(try NumberText.octal(text))
        case .pathPattern: try PathText.parse(text)
        case .pointer: .pointer(try PointerText.parse(text))
        case .purpose: .text(try NameText.purpose(text))
        case .rate: .rate(try NumberText.rate(text))
        case .secret: .reference(try NameText.reference(text, noun: noun, isSecret: true))
        case .server: .server(try AddressText.server(text))
        case .share: .share(try NumberText.share(text))
        case .size: .size(try NumberText.size(text, bounds: bounds))
        case .text: .text(text)
        case .url: .text(try NameText.url(text))
        }
    }
}
