// swift-tools-version: 6.1
import PackageDescription

/// Settings of every target: Swift 6 mode comes with the tools version; imports are internal unless they say otherwise.
let settings: [SwiftSetting] = [
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("ExistentialAny"),
]

/// Settings of targets whose tests look inside them: all tests run on the release build.
let testable = settings + [.unsafeFlags(["-enable-testing"], .when(configuration: .release))]

/// Settings of tests, which run on the release build: what they test is optimized, and they themselves are built in a
/// third of the time without.
let tests =
  settings + [
    .unsafeFlags(
      ["-Onone", "-no-whole-module-optimization", "-enable-batch-mode"], .when(configuration: .release))
  ]

/// Links Swift's runtime and Foundation into a program: calls of them cost less than those of shared libraries, and it runs
/// where Swift is not installed. The libraries are those that Foundation's own need; lld, since gold warns of one of them.
let standalone: [LinkerSetting] =
  [.unsafeFlags(["-static-stdlib", "-use-ld=lld"], .when(configuration: .release))]
  + ["CoreFoundation", "_FoundationICU", "_FoundationCShims", "_FoundationCollections", "swiftSynchronization"].map {
    .linkedLibrary($0, .when(configuration: .release))
  }

let package = Package(
  name: "sheaf",
  products: [
    .executable(name: "sheaf", targets: ["sheaf"]),
    .executable(name: "sheaf-sidecar", targets: ["sheaf-sidecar"]),
    .executable(name: "sheaf-hub", targets: ["sheaf-hub"]),
    .library(name: "SheafWire", targets: ["SheafWire"]),
  ],
  dependencies: [
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.2.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.16.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.26.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.86.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.3.0"),
    .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
    .package(url: "https://github.com/apple/swift-certificates", from: "1.10.0"),
    .package(url: "https://github.com/apple/swift-asn1", from: "1.3.0"),
  ],
  targets: [
    .target(
      name: "CFuse",
      linkerSettings: [.linkedLibrary("fuse3")]
    ),
    .target(
      name: "Fuse", dependencies: ["CFuse", .product(name: "Logging", package: "swift-log")],
      swiftSettings: testable),
    .executableTarget(
      name: "fuse-fixture", dependencies: ["Fuse", .product(name: "Logging", package: "swift-log")],
      path: "Tests/Fixtures/fuse-fixture", swiftSettings: settings),
    .testTarget(name: "FuseTests", dependencies: ["CTestSystem", "Fuse", "fuse-fixture"], swiftSettings: tests),
    .target(name: "SheafModel", swiftSettings: settings),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CSQLite"),
    .systemLibrary(name: "CQRCode", providers: [.apt(["libqrencode-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .target(
      name: "SheafStore",
      dependencies: [
        "CLinux", "CSQLite", "CZstd", "SheafModel", .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"), .product(name: "Crypto", package: "swift-crypto"),
      ], swiftSettings: testable),
    .target(
      name: "SheafLibrary",
      dependencies: [
        "SheafModel", "SheafReplica", "SheafStore", "SheafWire",
        .product(name: "HeapModule", package: "swift-collections"), .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: testable),
    .testTarget(
      name: "StoreTests",
      dependencies: [
        "CTestSystem", "SheafModel", "SheafStore", .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
      ], swiftSettings: tests),
    .executableTarget(
      name: "library-fixture", dependencies: ["SheafModel", "SheafLibrary"], path: "Tests/Fixtures/library-fixture",
      swiftSettings: settings),
    .executableTarget(
      name: "large-library", dependencies: ["SheafModel", "SheafLibrary"], path: "Tests/Fixtures/large-library",
      swiftSettings: settings),
    .executableTarget(
      name: "crafted-library",
      dependencies: [
        "SheafModel", "SheafReplica", "SheafStore", "SheafLibrary", "SheafWire",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      path: "Tests/Fixtures/crafted-library", swiftSettings: settings),
    .testTarget(
      name: "LibraryTests",
      dependencies: [
        "SheafModel", "SheafStore", "SheafLibrary", "crafted-library", "library-fixture",
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ], swiftSettings: tests),
    .target(
      name: "SheafMount",
      dependencies: [
        "Fuse", "SheafModel", "SheafLibrary", .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: testable),
    .target(
      name: "SheafReplication",
      dependencies: [
        "SheafHubClient", "SheafLibrary", "SheafModel", "SheafReplica", "SheafService", "SheafWire",
        .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: testable),
    .target(
      name: "SheafService",
      dependencies: [
        "SheafModel", "SheafLibrary", .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ], swiftSettings: testable),
    .target(
      name: "SheafClient",
      dependencies: [
        "SheafModel", .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: settings),
    .target(
      name: "SheafCommand",
      dependencies: [
        "CQRCode", "SheafModel", "SheafLibrary", "SheafMount", "SheafReplication", "SheafService", "SheafClient",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      swiftSettings: testable),
    .executableTarget(
      name: "sheaf", dependencies: ["SheafCommand"], swiftSettings: settings, linkerSettings: standalone),
    .target(
      name: "SheafHubClient",
      dependencies: [
        "CZstd", "SheafModel", "SheafWire", .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"), .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ], swiftSettings: testable),
    .target(
      name: "SheafSidecar",
      dependencies: [
        "SheafModel", "SheafClient", "SheafHubClient", "SheafWire",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"), .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "OrderedCollections", package: "swift-collections"),
        .product(name: "Subprocess", package: "swift-subprocess"),
        .product(name: "SystemPackage", package: "swift-system"), .product(name: "TOMLKit", package: "TOMLKit"),
      ], swiftSettings: testable),
    .executableTarget(
      name: "sheaf-sidecar",
      dependencies: [
        "SheafHubClient", "SheafModel", "SheafSidecar",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ], swiftSettings: settings, linkerSettings: standalone),
    .target(name: "SheafWire", swiftSettings: testable),
    .target(name: "SheafReplica", dependencies: ["SheafWire"], swiftSettings: testable),
    .testTarget(
      name: "ReplicaTests",
      dependencies: [
        "ConformanceKit", "HubKit", "SheafHub", "SheafLibrary", "SheafModel", "SheafReplica", "SheafReplication",
        "SheafStore", "SheafWire", .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: tests),
    .systemLibrary(name: "CPostgres", providers: [.apt(["libpq-dev"])]),
    .target(
      name: "SheafHubStore", dependencies: ["CPostgres", .product(name: "GRDB", package: "GRDB.swift")],
      swiftSettings: testable),
    .target(
      name: "SheafHub",
      dependencies: [
        "CZstd", "SheafHubStore", "SheafModel", "SheafWire",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "HummingbirdTLS", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"), .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "SwiftASN1", package: "swift-asn1"), .product(name: "X509", package: "swift-certificates"),
      ], swiftSettings: testable),
    .target(
      name: "SheafHubCommand",
      dependencies: [
        "SheafHub", "SheafHubStore", "SheafModel", "SheafWire",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ], swiftSettings: testable),
    .executableTarget(
      name: "sheaf-hub", dependencies: ["SheafHubCommand"], swiftSettings: settings, linkerSettings: standalone),
    .target(
      name: "HubKit",
      dependencies: ["ConformanceKit", "MountKit", "SheafHub", "SheafHubStore", "SheafModel", "SheafWire"],
      path: "Tests/HubKit", swiftSettings: settings),
    .testTarget(
      name: "HubStoreTests", dependencies: ["ConformanceKit", "HubKit", "MountKit", "SheafHubStore"],
      swiftSettings: tests),
    .testTarget(
      name: "HubTests",
      dependencies: [
        "ConformanceKit", "HubKit", "MountKit", "SheafHub", "SheafHubClient", "SheafHubCommand", "SheafHubStore",
        "SheafModel", "SheafSidecar", "SheafWire",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"), .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ], exclude: ["Replica/hub-proxy", "Replica/share-worker"], swiftSettings: tests),
    .testTarget(name: "ArchitectureTests", swiftSettings: tests),
    .testTarget(
      name: "SheafServiceTests",
      dependencies: [
        "SheafModel", "SheafLibrary", "SheafService", "SheafClient", .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: tests),
    .testTarget(
      name: "SidecarTests",
      dependencies: [
        "ConformanceKit", "HubKit", "MountKit", "SheafClient", "SheafLibrary", "SheafModel", "SheafService",
        "SheafSidecar",
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ], exclude: ["internet", "receiver"], swiftSettings: tests),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "ConformanceKit", "Fuse", "MountKit", "SheafCommand", "SheafModel", "SheafLibrary", "SheafMount", "SheafStore",
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: tests),
    .target(name: "CTestSystem", path: "Tests/CTestSystem"),
    .target(
      name: "ConformanceKit", dependencies: ["CTestSystem"], path: "Tests/ConformanceKit", swiftSettings: settings),
    .target(
      name: "MountKit", dependencies: ["CTestSystem", "ConformanceKit"], path: "Tests/MountKit",
      swiftSettings: settings),
    .executableTarget(
      name: "test-helper", dependencies: ["ConformanceKit", "MountKit"], path: "Tests/TestHelper",
      swiftSettings: settings),
    .testTarget(
      name: "ConformanceTests",
      dependencies: [
        "ConformanceKit", "MountKit", "Fuse", "SheafLibrary", "SheafModel", "SheafMount", "test-helper",
      ], exclude: ["hostile-calls"], swiftSettings: tests),
    .testTarget(
      name: "EditorTests", dependencies: ["ConformanceKit", "MountKit", "SheafLibrary", "SheafModel"],
      exclude: ["type-keys", "dance", "interleave", "office"], swiftSettings: tests),
    .testTarget(
      name: "CrashTests", dependencies: ["CTestSystem", "ConformanceKit", "MountKit", "SheafStore", "test-helper"],
      swiftSettings: tests),
    .testTarget(
      name: "MountTests", dependencies: ["CTestSystem", "Fuse", "MountKit", "test-helper"], swiftSettings: tests),
    .target(
      name: "FuzzDecoders",
      dependencies: [
        "Fuse", "SheafClient", "SheafCommand", "SheafHub", "SheafHubClient", "SheafLibrary", "SheafModel",
        "SheafSidecar", "SheafStore", "SheafWire",
        .product(name: "NIOCore", package: "swift-nio"),
      ], path: "Tests/Fuzz/Decoders", swiftSettings: settings),
    .testTarget(
      name: "FuzzTests", dependencies: ["FuzzDecoders", "SheafModel"], path: "Tests/Fuzz/Tests",
      swiftSettings: tests),
  ]
)

// The build of mount-scripts/fuzz: the modules that decode something, instrumented for libFuzzer, and of modules with
// large dependencies the decoders alone.
if Context.environment["SHEAF_FUZZING"] != nil {
  let parts: [String: (dependencies: [String], sources: [String])] = [
    "SheafClient": (["NIOCore"], ["LineBuffer.swift"]),
    "SheafCommand": (["SheafModel"], ["Mounting/MountOptions.swift", "Output/StandardStreams.swift"]),
    "SheafHub": (
      ["SheafModel", "SheafWire", "Crypto"],
      [
        "Accounts/DeviceKey.swift", "CheckedText.swift", "Contents/Chunk.swift", "Contents/Manifest.swift",
        "Events/LogToken.swift", "Federation/HubSignature.swift", "Federation/IdentityTree.swift", "HubError.swift",
        "Sharing/InboxNote.swift", "Sharing/OutsiderNews.swift", "Sharing/SharedToken.swift",
        "Sharing/WireWords.swift", "Zones/ChangeID.swift", "Zones/FeedToken.swift", "Zones/SendCheck.swift",
      ]
    ),
    "SheafHubClient": (
      ["NIOCore", "SheafModel", "SheafWire"],
      ["HubIdentity.swift", "MultipartReader.swift", "ServerSentText.swift", "SoundPages.swift"]
    ),
    "SheafLibrary": (["SheafModel", "SheafStore"], ["Events/EventData.swift"]),
    "SheafSidecar": (
      ["SheafModel", "Crypto", "TOMLKit"],
      ["Configuration", "Delivery/EventFilter.swift", "Delivery/RetrySchedule.swift", "Sinks/WebhookSecret.swift"]
    ),
  ]
  let whole: Set = [
    "CFuse", "CLinux", "CSQLite", "CZstd", "Fuse", "FuzzDecoders", "SheafModel", "SheafStore", "SheafWire",
  ]
  package.products = []
  package.targets.removeAll { !whole.contains($0.name) && parts[$0.name] == nil }
  for target in package.targets {
    if target.type == .system { continue }
    if let part = parts[target.name] {
      target.sources = part.sources
      target.dependencies.removeAll { dependency in
        switch dependency {
        case .byNameItem(let name, _), .productItem(let name, _, _, _), .targetItem(let name, _):
          !part.dependencies.contains(name)
        @unknown default: true
        }
      }
    }
    target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-sanitize=fuzzer"])]
  }
  package.targets.append(
    .executableTarget(
      name: "sheaf-fuzz", dependencies: ["FuzzDecoders"], path: "Tests/Fuzz/Program",
      swiftSettings: settings, linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]))
}
