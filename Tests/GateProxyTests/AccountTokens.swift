// Tokens and their keys, made once with another library. All: sub alice, exp 2000000000.

enum Tokens {
    /// RS256.
    static let rs256 = """
        eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAw\
        MH0.JpP_h2WPLYDBoWrRNDYusBJXfA-\
        gd6bjEVsFqnQ1mkLI6W4L7YFIx8ds5B5DZOAPSUe_5Zged4iICgnOZVls21KzhtrgfnTvFHlz-\
        qYUOyEqk7Xsf2zqNlV7VVGtmE4a6O61-hO-\
        KpbpvakILwxsLCAfIWK_f2bgmovkcQgRZq_qSLhuJG-jFv9GJNTLQP9MlVzrRt8m_KJEnN6PmMsW\
        iTvRMmxR2dHgvW1f0w7tHCnJtWU0cB5LftUIHxAAE08xHpszvhsYLndmNnRRGlK58kxB8zZt7aLq\
        m1bZhJJNmuix9krmbvOgSH5o497x0yKX8mfoOmP58x0IFpP8ICTKRA
        """
    /// PS256.
    static let ps256 = """
        eyJhbGciOiJQUzI1NiIsImtpZCI6InIxIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAw\
        MH0.khwrqM9mekrcyCYn8xApqxyRybV7aVHh768c1GYx4BtM4ckDEeEsgkhFWhBXg-iQEtr4ik5m\
        6u-\
        CiFGQEPjvOfcRhSpi4mkOg1nsVs90_dkTfcT4qq6vTgP1PacRkNCQ2cePE_IMA60txgfcBQMV01E\
        dD8uNTs4oODZyKKxFoKLln81WVxLwzX2SF-7Qn_6bk4VEFMbU5q7eT17-\
        1ogjFhVywEQhvLYW4n0HGdj2Qr2e9MA0VLsElMmlFI21R6f_rgZ834vWlYAjS6Vj4NpPEYYU9yMI\
        ks3rnVB9D2yQT6QXYXM4kg8P_Pac8pNRBsTBOSTrQIp03BLt1e0MyQP5-w
        """
    /// EdDSA.
    static let edDSA = """
        eyJhbGciOiJFZERTQSIsImtpZCI6Im8xIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAw\
        MH0.-WCKTPIBkx2VKWgC5ggvW2Ku83IFc3fXOBpyCj-\
        AimEvnWHIzSLIscIUdR8tRMF6hpex3t1cNLCFEGqmCXAmCw
        """
    /// HS256 with the PEM of the RSA key as its secret.
    static let hs256OfPEM = """
        eyJhbGciOiJIUzI1NiIsImtpZCI6InIxIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAw\
        MH0.98W7ak7rfXRfva_p0m6O5vW0-c-1yUZLjPDPN8woZWA
        """
    /// RS256 in the header, an HMAC with the PEM in its place.
    static let rs256OfHMAC = """
        eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAw\
        MH0.ZTwG_1g4AeeebHFMkfNcXLhCfXuayy_ujyTkhWxMq1Y
        """
    /// RS256 in the header, signed as PS256.
    static let psAsRS = """
        eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAw\
        MH0.ZezLwrwqmW27kWvIl37ZqvuJSxpZ6iGMIt187wn2JiPEcFmv5f3E7hv3ObOwrTQjHDxWyLXT\
        UFD8X679x2OBnkp06hHzikuh2YX6p6gkn7eEYdiBbcbkUiCgeU9Eb-\
        Hrwajim-2eTL8fqKHpiGpg6Jmnl6YWXBGJMJdJsiJrW-aN2EOnARaN_XpiZGD_ChH5AtE8Mrvd3m\
        xZ16h4ncCyQQSWroy5osX8ptrdgqUGtTACpPlqd6SHdiqjY8GitATckZ9Ff2CORtR3BsVGdS-\
        SJp7OAy-o2AKpcYKw6ihWI2isQH0fZhJ81mGzFSU_yBKnM2P94-ye0U8fLwSrvLfTVg
        """
    static let modulus = """
        ucE05_6tBvqTyvQNaSM4CRVEfh2JwgtHjzRKKAwuWjfndDs_RahG_gbRgBvdUPOf9B-\
        dCr4b0w3aIhQEsjPpIBCPhBJQDl1YcGlr8q4O5VQytLYHqdA6rPKsSXbeDWz54C_CaHfukCBHggy\
        WHIj3CF5MTVZbxXt8t1mqQYCOsGLCOIIFqz69H21QeHP6i1hrY-gCD8cphlw0VIMSyVtpRvKcWr7\
        CLIa11iMwgmyL4uqdW6LTUV4kMpOkgZg-\
        I9YgzAOKsDQJtatjfhrmeNuihZ2uu6_4LFDOfegTm3kYFd-\
        YDNcFIXAVbauCF8N_X7IzvmJPNlsF1KJ8ZVk82LMO4Q
        """
    static let edwardsX = "9PuDXtHAnleKYOiZjobQdM-S4Tbusjp_Rlc-qb6cTDo"
    static let pem = """
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
}
