// Keys and signatures over `header.payload`, made once with another library; base64url.

enum TokenVectors {
    static let message = Array("header.payload".utf8)

    /// RSA, 2048 bits.
    static let rs256 = """
        I52kqx9wRhlA8x6_UvsEmAhco5xKMVI4-WcG_56CB_YvNPc9-IVbtYaDBnp4V-\
        LgJoFPJZn1LQ8DIUPqOUoOhjnoIE-p3EojH719wE_YEG3rlNwxT_LK5WNFLZ-\
        GoZa64vgDlWVZRbGqi9VpZD50Q7nklsTRfY2Ii55y4CeUsxoiT-GHz05bishdaJyB-omy5sxwnPX\
        OISHg3yBhI6tRV6thssANjf6q4aGhEDBqz_Tx0dhgIGPCvy9z6lwRrZYPhNXf7W9cz8aycq11YZy\
        JNOpgNX-qXsxa9Hh1R0pBLgbwZPP6mTSGyAgR0uB5kZDcdStQj6lFwtpHm6iza-gC0Q
        """
    /// The same key, SHA-1.
    static let rs256SHA1 = """
        ovqvLA0qn6NW3ITtD8GWAXLj7e1EtbLkHdx6agyHbtYKEeogqMEKmY5KEtZBweXAqbNfBtMfwUUt\
        jwuAYkgYSCcKYDkPEFTMS4BclElbGLpc9MBkPNahSQH2WBkNkGeV_AAKL8xa3fXzslWXq7O2UmkE\
        sJhbmtwSvO8dy3IS95oRLtjaO7k2237-\
        IAbvXMLC0UHjmRGt9mbnM4GpLTXdfv817WFVSh8Ptbp6ZSL97tz1XZZWQ78FIGU9XxQeHtAvrn0M\
        HzjFvoe5jwWR7XLRiOFm35BTCzogh8Ob24hE8NEwZXKQbF2QgvZ6gdRM9C26M1ylMxQJ_zUVgDjF\
        mSJHLQ
        """
    /// The same key, SHA-512.
    static let rs512 = """
        KGUPUAQnH3nBZWbjBjpGQQHR0L8uEWE1-3W1CuXjBtBButCtYa86zrBak578h4JH5R4-\
        vhzzIJIzb02djk03g1_71tJ53GyeoaM7kZtkXx81wey-ydCS4F7AiGD0mrEqkZSctLtXITrs9vKU\
        1tOujOsol3f2KZrwAOqyCuZVBfs2onR34txFShVRThQn_rA8G_vj-GH3UBKWszUwf14R_-\
        3PZAvmdg6gfTwIcA8D3hOKbzedzdNBxcokyX2VVWNRDA1mpE8c5ynLkub7QW1a4rXnXY5QWEgFrS\
        7uKKbh-1ZCVBn4nq1T-ZhsMxlXu0SucDHiHYWOKy0vPX850kFAdA
        """
    /// The same key, PSS.
    static let ps256 = """
        kOGjo4Xgpxn0xCpXQx89y92cOm5UfwGmIFeh_OwFnChXi66Iiu53VdzXDTjtwmB3Kq-bEfr8tn6o\
        ixHKVgWfGSBMbTwzwUtx59d444c8NnW3j0-\
        Wc2iU4AI2WeRexiKRzgI2jk5JuLRAsp5uPgj5A6acL44knuqRlLZLkIxrWFwU_aEO0L-94eZaW5-\
        vaMh4p3-\
        CpJ8Cfx4WvuHXNU3ceO0Op2jhOafvl0M58rM6syBmsqj6sfXwmEqR7CyddqUZ5T90UsNhtZJW8Z7\
        TnFFNif0hoVIRFFYBfCDn1S8Gd9896NeRzVoB43UCXMPDoLleto_sNJKPlYm9JEv1Lfajbg
        """
    /// PSS with 20 bytes of salt.
    static let ps256Salt20 = """
        FvTS5DwOqW02btzgRZSuA6FbYFX2B6CFUfqxPFJAhAmFZqzQqJOaCXCMzaJDUVOzkJ6t85xabO1w\
        y1vYDqtT_dvs5Cr1lnxz5f-jSA0E2vFkQWvEB7K_YLQslxE-FU8SSvmpBgLRsbigxGnf26jJAwK5\
        MN70TBOL-\
        a1vafmgnFiv5ao67I04vwsWx39wnXmG7Cb_NjMz4G0_iSLiMF7WryBGN6EOFIZPuQZMYG4qlSufY\
        5lX6j7RxoPmraOn8hg43zJ9lOCKS_u_-Sdg-\
        KxiB6ZIn9acOoRQ3jYFa4fowO2aAXJmHcrIAHyMTx_6pHdpdd6NoRMSu7P5uCsKXO5Pwg
        """
    /// PSS with as much salt as fits.
    static let ps256SaltMax = """
        m8_qq3eArQ6Ukglqm2JWcH-\
        XDHJR1cpGBjEbHJhyxy2t_XeUrLa4ztfJk4JseapSbTUfedwA494L4cLfjhp_BY8ErXSCmRGBJ-\
        NMUDWXBi1LmgX5iMwEa9RDYSh1fUqS5m2b7FzZ-\
        Nl1JwdPS1tt_paISGLovmqFiwrjbGGOwR7-jvgAPmrG7XYVK_j42gXKyNH-eR_XC93dmrIhdqZdv\
        HxOq5Ot_03La4_VSChwY0bk19g6JeDRfJRrltj7PUMFlC4B3KKfXtEMEznBrYrR0XWFiR6SFUq6I\
        P06hthV88UBMF9YVgj9iaupGBA1fJezmzTEW8Nh2XjvNE4WBGFjCQ
        """
    /// PSS with MGF1 over SHA-1.
    static let ps256MGFSHA1 = """
        DKCULg62RqO43RCx4JOAFjIW_2rOw6GfbfXW5iZXBd0YaG4unfqf2OHf37edrP5HkoZR90cKNYVS\
        n1m-YEHLMvEIYU-sqzThU1grysuyujRimqHeORLqODsbZgGDotWcJMYzYj19ubBJ18KliMSYT-\
        wHmW1lcw9rfIGL28NUDE5UItT5OcvXqxrMjuGxBr1OnYhwy7YXcnF_ODENlyH-\
        Y_WE1PlS_YXk7kDU8QKx-qjWPGRsxwtZl25xlFR8rr2vlmy6dKLWJBITZXbH8RQnUuSj5BFEqECS\
        MBPRQ89UyGm9fJGPQGnL_6LraWSVPcPd4Yg-maKf52mr7ehN7fuPxw
        """
    /// RSA, 2056 bits, exponent 3.
    static let rs256Of2056 = """
        FaFyuSlVJknrM4tWZGdLPXVKeZg2gVOtGkfokEgG8lVtB8xVb9PgNU5x2VDXCFjxs1U4lfF-\
        0PnEC2HhEEJt8T_ebpRGE-SCPwAQi9XjEuuPuyo4sI8ToFJ3VZZn1QMLN0OYRJh3qSnI-\
        iLKk2YmOCU-_yedfaAXY5MJEWjDBzxv3WyFc3lGqkiKDfBWf4UttB1MnkTUnmX7aEIheX_ZKDBFB\
        TZbesuc6ElP1Iis0wEVM7NsofpMU-p3HgxqBeadcGWcQctfYZqr7wCyNlzGnwNd-dL_vMZ-\
        ES8q6JtvQgI8XjNIVxUOX0dhR2kvajMEpPZQKrcJEFkRvXvzz9O-iKI
        """
    /// P-256, the same in DER.
    static let es256DER = """
        MEUCIDtImnTFUOVcg_WckzCCaQvGPOzHjlhYYJs8ce84luYiAiEA7l1HBMgtUDb4e6Sd30NqM6OB\
        UX2FhREw6SHKTUFXZDs
        """
    /// P-256, r ‖ s.
    static let es256 = """
        O0iadMVQ5VyD9ZyTMIJpC8Y87MeOWFhgmzxx7ziW5iLuXUcEyC1QNvh7pJ3fQ2ozo4FRfYWFETDp\
        IcpNQVdkOw
        """
    /// P-256, r begins with a zero byte.
    static let es256ShortR = """
        AK8oKJT5LydYXDevOTYzFIfckk40buu7xMyBvlSLvlY-6U-\
        HxW4ppw_lhFyXlu5BXNxsrxdIBUCQZlyrWTq2Yg
        """
    /// Ed25519.
    static let eddsa = """
        igHElrX_w_G896V51Ot4h6R3kNhjVuPG3YvtmRmamiF8n0RwFsFKu-\
        R3cAsIyOrbSGnV5Am141E_CoYpVUd3CA
        """
    /// A number of a key below.
    static let rsaModulus = """
        ucE05_6tBvqTyvQNaSM4CRVEfh2JwgtHjzRKKAwuWjfndDs_RahG_gbRgBvdUPOf9B-\
        dCr4b0w3aIhQEsjPpIBCPhBJQDl1YcGlr8q4O5VQytLYHqdA6rPKsSXbeDWz54C_CaHfukCBHggy\
        WHIj3CF5MTVZbxXt8t1mqQYCOsGLCOIIFqz69H21QeHP6i1hrY-gCD8cphlw0VIMSyVtpRvKcWr7\
        CLIa11iMwgmyL4uqdW6LTUV4kMpOkgZg-\
        I9YgzAOKsDQJtatjfhrmeNuihZ2uu6_4LFDOfegTm3kYFd-\
        YDNcFIXAVbauCF8N_X7IzvmJPNlsF1KJ8ZVk82LMO4Q
        """
    /// A number of a key below.
    static let p256X = """
        Z_gyx88FSkgvDm8WsfBogrYFzkT5oO3Z6zuFZTvWHTk
        """
    /// A number of a key below.
    static let p256Y = """
        x4W0oJQydY6PyFWJT3LH7dXchj9Ng_jNqYw4m0Uxbrc
        """
    /// A number of a key below.
    static let ed25519X = """
        9PuDXtHAnleKYOiZjobQdM-S4Tbusjp_Rlc-qb6cTDo
        """
}

/// The keys as PEM.
enum TokenKeyTexts {
    static let rsa = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAucE05/6tBvqTyvQNaSM4
        CRVEfh2JwgtHjzRKKAwuWjfndDs/RahG/gbRgBvdUPOf9B+dCr4b0w3aIhQEsjPp
        IBCPhBJQDl1YcGlr8q4O5VQytLYHqdA6rPKsSXbeDWz54C/CaHfukCBHggyWHIj3
        CF5MTVZbxXt8t1mqQYCOsGLCOIIFqz69H21QeHP6i1hrY+gCD8cphlw0VIMSyVtp
        RvKcWr7CLIa11iMwgmyL4uqdW6LTUV4kMpOkgZg+I9YgzAOKsDQJtatjfhrmeNui
        hZ2uu6/4LFDOfegTm3kYFd+YDNcFIXAVbauCF8N/X7IzvmJPNlsF1KJ8ZVk82LMO
        4QIDAQAB
        -----END PUBLIC KEY-----
        """
    static let p256 = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ/gyx88FSkgvDm8WsfBogrYFzkT5
        oO3Z6zuFZTvWHTnHhbSglDJ1jo/IVYlPcsft1dyGP02D+M2pjDibRTFutw==
        -----END PUBLIC KEY-----
        """
    static let ed25519 = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEA9PuDXtHAnleKYOiZjobQdM+S4Tbusjp/Rlc+qb6cTDo=
        -----END PUBLIC KEY-----
        """
    static let rsa1024 = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDofrC020eGgmThV1ygJe6tAzNr
        5KrNx0V4SvfZ1OYPqlIfhXAQoKJ6qRVMGpjDYbC8QeZCb5Pqo5KHXLnIW/aHCLp3
        3qUlavcynF+bbTs7obEcMXh4zooD9kogCWD9bFFBg65tV1Y92n2c2yqOvtpIxL0L
        +sE9+ILziOAZkAokjQIDAQAB
        -----END PUBLIC KEY-----
        """
    static let rsa2056 = """
        -----BEGIN PUBLIC KEY-----
        MIIBITANBgkqhkiG9w0BAQEFAAOCAQ4AMIIBCQKCAQIAutPYxQtSeFOE0vX+ooT4
        5WG5lESDicL6tiVpHOsCVHChfkvwMU49jZUcBqhwPsivJsSIvNp1L+z+T8EpN7uj
        V9y2eFDHhROGMQFDjZJJUD+U4SX4phzJYBBFdhrncKK18/2CU2+TgLuHRjaZr9ZQ
        x1YRE4Moror+evckeT3L1kWCv4vtO1KkTe2QcFsfGD99z8mgwRwvehs+Ccv5AUdg
        rGuXKwcSwQDwOWYz7kbSvEWPoLLiKsBbJmeGJcSdsvJdnL9FLS1HF2CudImE/V/W
        BpBKREVVEQ45p0dJarCk+5FM3pgV/JRbJquWMmY16+uUKkPAYC0JCpcaU3FDfUiL
        U60CAQM=
        -----END PUBLIC KEY-----
        """
    static let p384 = """
        -----BEGIN PUBLIC KEY-----
        MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEFjLyWwDYp6v34L+dXnuc3sG+ZF8+vbKv
        fmyT3RoXTifdIXRgaXBPZVrB+zKpJlqvFKQ/pVYkLbOe34b6eYfs8YfH/XBWzci+
        ZO4r/5NN7mUJ1780HYaeJo+I8/Acgf+g
        -----END PUBLIC KEY-----
        """
    static let secp256k1 = """
        -----BEGIN PUBLIC KEY-----
        MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEqDvJH4vl3G8AnrUYnio0FtML431ww9E9
        GlkmzxCa9pQ/8xY2xi0kzMslNvpx2/Xh0WbvXbebbGylCL/YjHhLLQ==
        -----END PUBLIC KEY-----
        """
    static let ed448 = """
        -----BEGIN PUBLIC KEY-----
        MEMwBQYDK2VxAzoAPdEtsaQHr8oXMu63xyueCtIdvd5Om8yB7NPxNXTRa0FHq6bE
        uqJqn3SaVHWrk5+wTi24KaHNersA
        -----END PUBLIC KEY-----
        """
}
