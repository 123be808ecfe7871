internal import GateConfig
internal import GateCrypto
internal import GateRuntime

/// What DeviceCheck says of a token.
enum DeviceCheckOutcome {
    /// It is one of the team's devices; with its bits where they were asked for.
    case passed(DeviceCheckMessage.Bits?)
    /// It is no token, or none of this environment, or too old.
    case tokenInvalid
    /// Nothing is to be had now.
    case unavailable(retryAfter: Int?)
}

extension AppleServices {
    /// Asks DeviceCheck about `token`. `then` runs on the loop of `worker` once, never before this
    /// returns, and not at all after the call was cancelled.
    /// - Parameter bits: What `update_two_bits` writes.
    /// - Throws: Where nothing is asked now.
    func askDeviceCheck(
        _ call: AppleRequest.Call, _ token: [UInt8], bits: DeviceCheckMessage.Bits? = nil,
        environment: App.Environment, deadline: Duration, on worker: Worker,
        then: @escaping (DeviceCheckOutcome) -> Void
    ) throws(AppleUnavailable) -> InternalCall {
        let body = DeviceCheckMessage.body(
            token: token, transaction: worker.transactionID(),
            time: worker.context.unixMilliseconds(), bits: bits)
        let request = AppleRequest(
            call: call, environment: environment, body: body, deadline: deadline)
        return try start(request, on: worker) { [weak worker] outcome in
            guard let worker else { return }
            then(DeviceCheckOutcome(outcome, of: call, worker))
        }
    }
}

extension DeviceCheckOutcome {
    fileprivate init(_ outcome: AppleOutcome, of call: AppleRequest.Call, _ worker: Worker) {
        switch outcome {
        case .answer(status: 200, let body) where call == .queryTwoBits:
            if let bits = DeviceCheckMessage.bits(body) {
                self = .passed(bits)
            } else if DeviceCheckMessage.isObject(body) {
                worker.context.errorLog.write(
                    .error,
                    "apple: \(call.rawValue): bits that cannot be read: "
                        + "\"\(AppleText.excerpt(body))\"")
                self = .unavailable(retryAfter: nil)
            } else {
                worker.context.errorLog.write(
                    DeviceCheckMessage.isKnownNoState(body) ? .debug : .info,
                    "apple: \(call.rawValue): no bits: \"\(AppleText.excerpt(body))\"")
                // Bits that were never set are not set.
                self = .passed(DeviceCheckMessage.Bits())
            }
        case .answer(status: 200, _): self = .passed(nil)
        case .answer(status: 400, _): self = .tokenInvalid
        case .answer, .refused: self = .unavailable(retryAfter: nil)
        case .unavailable(let retryAfter): self = .unavailable(retryAfter: retryAfter)
        }
    }
}

extension Worker {
    /// A text that never comes again.
    fileprivate func transactionID() -> String {
        "\(random.next())-\(random.next())"
    }
}
