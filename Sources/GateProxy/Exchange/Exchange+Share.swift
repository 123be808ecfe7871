// The share of an enforced route that is judged (`conf.md` §4). Outside it a request goes on as the
// route's `else` says; who cannot be told by what the share goes by is inside.

internal import GateBytes
internal import GateConfig
internal import GateHTTP
internal import GateStore

extension Exchange {
    /// What is done with the request: its route's mode, or what its share says outside.
    var mode: Route.Mode? {
        switch placement?.outside {
        case .monitor: .monitor
        case .off: .off
        case .none: route?.mode
        }
    }

    /// Finds the request's place in the share of its route, once what that goes by is known.
    func place(_ head: RequestHead, _ host: HostRuntime) {
        guard let share = route?.share, placement == nil else { return }
        let value: [UInt8]? =
            switch share.basis {
            case .account: account.isEmpty ? nil : account
            case .address: clientAddress.map { ShareText.bytes($0.shareKey) }
            case .keyID: enrolledKeyID(head, host)?.array
            }
        placement = SharePlacement(share, of: value, secret: context.store.secrets.current)
    }

    /// The key ID that the request names, where it is an enrolled one of the request's account;
    /// another can be made up anew for each request.
    private func enrolledKeyID(_ head: RequestHead, _ host: HostRuntime) -> Bytes32? {
        guard let keyID = ProofReader.keyID(head, host.fields), let app = host.app,
            let key = context.store.key(keyID), app.takes(key, of: account), !key.isRevoked
        else { return nil }
        return keyID
    }
}

/// What a share goes by, as bytes.
private enum ShareText {
    static func bytes(_ address: IPAddress) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: address.high)
        bytes.append(bigEndian: address.low)
        return bytes
    }
}
