import Foundation
import Testing

/// The layers of the design, kept by reading the sources: imports go down only, and each module knows its own trade.
@Suite struct ArchitectureTests {
  /// What each module may import beside the system's own modules.
  static let layers: [String: Set<String>] = [
    "CFuse": [],
    "Fuse": ["CFuse", "Logging"],
    "SheafModel": [],
    "SheafStore": ["CLinux", "CSQLite", "CZstd", "SheafModel", "GRDB", "GRDBSQLite", "Crypto"],
    "SheafLibrary": ["SheafModel", "SheafReplica", "SheafStore", "SheafWire", "Crypto", "HeapModule", "Logging"],
    "SheafMount": ["Fuse", "SheafModel", "SheafLibrary", "DequeModule", "Logging"],
    "SheafService": [
      "SheafModel", "SheafLibrary", "Hummingbird", "HummingbirdCore", "HTTPTypes", "Logging", "NIOCore", "NIOPosix",
      "ServiceLifecycle",
    ],
    "SheafClient": ["SheafModel", "AsyncHTTPClient", "HTTPTypes", "NIOCore", "NIOHTTP1", "Logging"],
    "SheafCommand": [
      "CQRCode", "SheafModel", "SheafLibrary", "SheafMount", "SheafReplication", "SheafService", "SheafClient",
      "ArgumentParser", "Logging", "NIOCore", "ServiceLifecycle", "UnixSignals",
    ],
    "SheafReplication": [
      "SheafHubClient", "SheafLibrary", "SheafModel", "SheafReplica", "SheafService", "SheafWire", "Logging", "NIOCore",
      "NIOPosix",
    ],
    "sheaf": ["SheafCommand"],
    "SheafHubClient": [
      "CZstd", "SheafModel", "SheafWire", "AsyncHTTPClient", "Crypto", "NIOCore", "NIOHTTP1", "NIOPosix", "NIOSSL",
    ],
    "SheafSidecar": [
      "SheafModel", "SheafClient", "SheafHubClient", "SheafWire", "AsyncHTTPClient", "Crypto", "GRDB", "Logging",
      "NIOCore", "NIOHTTP1", "OrderedCollections", "ServiceLifecycle", "Subprocess", "SystemPackage", "TOMLKit",
    ],
    "sheaf-sidecar": [
      "SheafHubClient", "SheafModel", "SheafSidecar", "ArgumentParser", "Logging", "ServiceLifecycle", "UnixSignals",
    ],
    "SheafWire": [],
    "SheafReplica": ["SheafWire"],
    "SheafHubStore": ["CPostgres", "GRDB"],
    "SheafHub": [
      "CZstd", "SheafHubStore", "SheafModel", "SheafWire", "AsyncHTTPClient", "Crypto", "HTTPTypes", "Hummingbird",
      "HummingbirdCore", "HummingbirdTLS", "Logging", "NIOCore", "NIOHTTP1", "NIOPosix", "NIOSSL", "ServiceLifecycle",
      "SwiftASN1", "X509",
    ],
    "SheafHubCommand": [
      "SheafHub", "SheafHubStore", "SheafModel", "SheafWire", "ArgumentParser", "Logging", "ServiceLifecycle",
      "UnixSignals",
    ],
    "sheaf-hub": ["SheafHubCommand"],
  ]

  /// Modules of the system and the language, which say nothing about layers.
  static let system: Set<String> = [
    "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "RegexBuilder", "Synchronization", "System",
  ]

  /// Words that a module does not know, as regular expressions.
  static let unknown: [String: [String]] = [
    "Fuse": [#"\b[Ss]qlite\b"#, #"\bSELECT\b"#, #"\bSheaf[A-Z]\w+"#],
    "SheafModel": [#"\b[Ff]use\b"#, #"\bSELECT\b"#, #"\bHTTP\w+\("#],
    "SheafStore": [#"\b[Ff]use\b"#, #"\bErrno\("#],
    "SheafLibrary": [#"\bFuse\w*\("#, #"\berrno\b"#, #"\bErrno\("#, #"\bSELECT\b"#],
    "SheafMount": [#"\bSELECT\b"#, #"\bINSERT\b"#],
    "SheafService": [#"\b[Ff]use\b"#, #"\berrno\b"#, #"\bSELECT\b"#],
  ]

  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The Swift files below a folder of the repository, by relative path.
  static func files(_ folder: String) throws -> [(path: String, lines: [Substring])] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: root.appendingPathComponent(folder).path)
    return try names.filter { $0.hasSuffix(".swift") }.sorted().map { name in
      let text = try String(contentsOf: root.appendingPathComponent("\(folder)/\(name)"), encoding: .utf8)
      return ("\(folder)/\(name)", text.split(separator: "\n", omittingEmptySubsequences: false))
    }
  }

  private func module(_ path: String) -> String { String(path.split(separator: "/")[1]) }

  @Test func importsGoDownOnly() throws {
    let form = /^\s*(?:@\w+\s+)*(?:public |package |internal |fileprivate |private )?import (?:\w+ )?(\w+)/
    var modules: Set<String> = []
    for (path, lines) in try Self.files("Sources") {
      let module = module(path)
      modules.insert(module)
      guard let allowed = Self.layers[module] else { continue }
      for (number, line) in lines.enumerated() {
        guard let name = line.firstMatch(of: form).map({ String($0.1) }), !Self.system.contains(name) else { continue }
        #expect(allowed.contains(name), "\(path):\(number + 1) imports \(name), which \(module) must not")
      }
    }
    #expect(modules.isSubset(of: Self.layers.keys), "modules without a layer: \(modules.subtracting(Self.layers.keys))")
    #expect(modules.count >= 8, "the sources were not found")
  }

  @Test func theManifestAgrees() throws {
    // A dependency that the manifest grants and the layers do not would go unnoticed until someone imports it.
    let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
    let form = /\.(?:executableT|t)arget\(\s*name: "(\w+)",\s*dependencies: \[([^\]]*)\]/
    for match in manifest.matches(of: form) {
      guard let allowed = Self.layers[String(match.1)] else { continue }
      let names = match.2.matches(of: /name: "(\w+)"|"(\w+)"/).compactMap { $0.1 ?? $0.2 }.map(String.init)
      let packages = Set(match.2.matches(of: /package: "([\w.-]+)"/).map { String($0.1) })
      for name in names where !packages.contains(name) {
        #expect(allowed.contains(name), "Package.swift lets \(match.1) depend on \(name)")
      }
    }
  }

  @Test func noModuleKnowsAnothersTrade() throws {
    for (path, lines) in try Self.files("Sources") {
      for word in Self.unknown[module(path)] ?? [] {
        let form = try Regex(word)
        for (number, line) in lines.enumerated() where line.firstMatch(of: form) != nil {
          // Prose may name what the code does not know.
          let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
          #expect(code.firstMatch(of: form) == nil, "\(path):\(number + 1) knows of \(word): \(line)")
        }
      }
    }
  }

  @Test func nothingIsLeftToDo() throws {
    let form = try Regex(#"\b(TO"# + #"DO|FIX"# + #"ME|HA"# + #"CK)\b"#)
    for (path, lines) in try Self.files("Sources") + Self.files("Tests") {
      for (number, line) in lines.enumerated() {
        #expect(line.firstMatch(of: form) == nil, "\(path):\(number + 1): \(line)")
      }
    }
  }

  /// `NSCondition` waits by the time of day: put back, that would keep everything from being saved for as long.
  @Test func nothingThatSavesGoesByTheTimeOfDay() throws {
    for (path, lines) in try Self.files("Sources/SheafStore") + Self.files("Sources/SheafLibrary") {
      for (number, line) in lines.enumerated() where line.contains("NSCondition()") || line.contains("(until: Date") {
        Issue.record("\(path):\(number + 1): \(line)")
      }
    }
  }

  @Test func noTestSleepsToSynchronise() throws {
    let sleeps = ["usl" + "eep(", "Task.sl" + "eep("]
    for (path, lines) in try Self.files("Tests") where !path.hasSuffix("/Waiting.swift") {
      for (number, line) in lines.enumerated() where sleeps.contains(where: line.contains) {
        Issue.record("\(path):\(number + 1) sleeps: \(line)")
      }
    }
  }
}
