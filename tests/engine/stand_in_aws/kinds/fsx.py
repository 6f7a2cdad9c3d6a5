"""File systems for weights. Replacements: internal/service/fsx/*.go."""

from .base import Call, Kind, Read

LUSTRE_KIND = Kind(
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "fsx",
    Call("CreateFileSystem", {"FileSystemType": "LUSTRE"}, inside="LustreConfiguration"),
    "{made.FileSystem.FileSystemId}",
    update=(
        Call(
            "UpdateFileSystem",
            {"FileSystemId": "{id}"},
            inside="LustreConfiguration",
            moto=False,
        ),
    ),
    read=Read("DescribeFileSystems", {"FileSystemIds": ["{id}"]}, "FileSystems[0]"),
    delete=(Call("DeleteFileSystem", {"FileSystemId": "{id}"}),),
    replaces=("subnetIds", "securityGroupIds", "deploymentType", "storageType", "kmsKeyId",
              "importPath", "exportPath", "driveCacheType", "importedFileChunkSize", "efaEnabled",
              "fileSystemTypeVersion", "backupId"),
    local=("skipFinalBackup", "finalBackupTags"),
    gives={
        "arn": "arn:aws:fsx:{region}:{account}:file-system/{id}",
        "dnsName": "{id}.fsx.{region}.amazonaws.com",
        "mountName": lambda c: c.facts["id"][-8:],
    },
)  # fmt: skip

DATA_REPOSITORY = Kind(
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    "fsx",
    Call("CreateDataRepositoryAssociation", moto=False),
    "dra-{fake}",
    update=(
        Call(
            "UpdateDataRepositoryAssociation",
            {"AssociationId": "{id}"},
            only=("importedFileChunkSize", "s3"),
            moto=False,
        ),
    ),
    delete=(Call("DeleteDataRepositoryAssociation", {"AssociationId": "{id}"}, moto=False),),
    replaces=("dataRepositoryPath", "fileSystemId", "fileSystemPath",
              "batchImportMetaDataOnCreate"),
    local=("deleteDataInFilesystem",),
    gives={"associationId": "{id}", "arn": "arn:aws:fsx:{region}:{account}:association/{id}"},
)  # fmt: skip

KINDS = (LUSTRE_KIND, DATA_REPOSITORY)
