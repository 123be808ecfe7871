internal import Glibc

/// What the machine and the process have.
package enum SystemFacts {
    /// Cores this process may run on, at least one.
    package static var cores: Int {
        max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    }

    /// Raises the soft limit of descriptors to the hard one, as far as the kernel lets us.
    /// - Returns: The limit in force.
    @discardableResult
    package static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return 1024
        }
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            // What cannot be raised stays as it was.
            _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// How many descriptors the process may have, and how many it has, counted where they are early
    /// in its life: among the lowest numbers.
    package static var descriptors: (limit: Int, used: Int) {
        let limit = raiseDescriptorLimit()
        let used = (0..<Int32(clamping: min(limit, 1024))).count { fcntl($0, F_GETFD) >= 0 }
        return (limit, used)
    }
}
